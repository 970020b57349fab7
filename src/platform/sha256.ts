// SHA-256 of a text's UTF-8 bytes, in hex. Loading node:crypto takes 8 ms of the 25 that a hot-path command may add to
// Node's own start-up; a flow file of about 600 bytes takes 0.3 ms with the code below. So the first kilobytes of a
// process are hashed here and the rest natively. A test checks that both give the same digest.

/** An update hashes its file twice; a process that hashes more than this reads many files. */
const PLAIN_BUDGET = 4096;
let plainLength = 0;
let nativeHash: ((algorithm: string, data: string) => string) | undefined;

export function sha256Hex(text: string): string {
  plainLength += text.length;
  if (plainLength <= PLAIN_BUDGET) return plainSha256Hex(text);
  nativeHash ??= process.getBuiltinModule("node:crypto").hash;
  return nativeHash("sha256", text);
}

/** The constants of FIPS 180-4: fractional parts of the roots of the first `count` primes. Derived, so that none is mistyped. */
function fractionOfRoot(root: (n: number) => number, count: number): Uint32Array {
  const words = new Uint32Array(count);
  let found = 0;
  for (let candidate = 2; found < count; candidate += 1) {
    let prime = true;
    for (let divisor = 2; divisor * divisor <= candidate; divisor += 1) {
      if (candidate % divisor === 0) {
        prime = false;
        break;
      }
    }
    if (!prime) continue;
    const value = root(candidate);
    words[found] = (value - Math.floor(value)) * 2 ** 32;
    found += 1;
  }
  return words;
}

let roundConstants: Uint32Array | undefined;

export function plainSha256Hex(text: string): string {
  roundConstants ??= fractionOfRoot(Math.cbrt, 64);
  const constants = roundConstants;
  const bytes = Buffer.from(text);
  const blocks = Math.ceil((bytes.length + 9) / 64);
  const padded = Buffer.alloc(blocks * 64);
  bytes.copy(padded);
  padded[bytes.length] = 0x80;
  padded.writeUInt32BE(Math.floor(bytes.length / 2 ** 29), padded.length - 8);
  padded.writeUInt32BE((bytes.length << 3) >>> 0, padded.length - 4);

  const state = fractionOfRoot(Math.sqrt, 8);
  const words = new Uint32Array(64);
  for (let block = 0; block < blocks; block += 1) {
    // Not readUInt32BE, whose checks take longer than the rounds in cold code.
    for (let i = 0, at = block * 64; i < 16; i += 1, at += 4) {
      words[i] = (padded[at]! << 24) | (padded[at + 1]! << 16) | (padded[at + 2]! << 8) | padded[at + 3]!;
    }
    for (let i = 16; i < 64; i += 1) {
      const a = words[i - 15]!;
      const b = words[i - 2]!;
      const s0 = ((a >>> 7) | (a << 25)) ^ ((a >>> 18) | (a << 14)) ^ (a >>> 3);
      const s1 = ((b >>> 17) | (b << 15)) ^ ((b >>> 19) | (b << 13)) ^ (b >>> 10);
      words[i] = words[i - 16]! + s0 + words[i - 7]! + s1;
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    for (let i = 0; i < 64; i += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + constants[i]! + words[i]!) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    state[0]! += a;
    state[1]! += b;
    state[2]! += c;
    state[3]! += d;
    state[4]! += e;
    state[5]! += f;
    state[6]! += g;
    state[7]! += h;
  }
  let hex = "";
  for (const word of state) hex += word.toString(16).padStart(8, "0");
  return hex;
}
