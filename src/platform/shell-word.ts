// Quotes a word for a POSIX shell: for hints, which people paste, and for crontabs. Names and paths come from untrusted
// files; unquoted, `x; rm -rf ~` in a hint would be a command. Pure.

const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

export function shellWord(word: string): string {
  return PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
