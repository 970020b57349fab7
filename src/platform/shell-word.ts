// Words of a command line as a shell reads them back: for hints, which are there to be pasted, and for crontabs. Names
// and paths come from strangers; unquoted, `x; rm -rf ~` in a hint would be a command. Pure.

const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

export function shellWord(word: string): string {
  return PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
