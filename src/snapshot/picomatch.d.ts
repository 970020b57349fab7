// The part of picomatch that path-patterns.ts uses.
declare module "picomatch" {
  interface Options {
    readonly dot?: boolean;
    readonly nonegate?: boolean;
    readonly noextglob?: boolean;
    readonly literalBrackets?: boolean;
    readonly strictSlashes?: boolean;
    readonly windows?: boolean;
  }
  const picomatch: { makeRe(glob: string, options?: Options): RegExp };
  export default picomatch;
}
