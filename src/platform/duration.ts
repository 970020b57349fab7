// Durations for people, as the two largest units. Pure.

const SECONDS_PER_UNIT = { d: 86_400, h: 3600, m: 60, s: 1 } as const;
type Unit = keyof typeof SECONDS_PER_UNIT;

/** 3725 → "1h 2m", for tables. */
export function formatDuration(seconds: number): string {
  const parts = largestUnits(Math.floor(seconds));
  return parts.length === 0 ? "0s" : parts.map(([value, unit]) => `${value}${unit}`).join(" ");
}

/** 3725 → "1 h 2 min", for sentences. */
export function describeDuration(seconds: number): string {
  const parts = largestUnits(Math.round(seconds));
  if (parts.length === 0) return "less than a second";
  return parts.map(([value, unit]) => `${value} ${unit === "m" ? "min" : unit}`).join(" ");
}

function largestUnits(seconds: number): [value: number, unit: Unit][] {
  let rest = Math.max(0, seconds);
  const values = (Object.keys(SECONDS_PER_UNIT) as Unit[]).map((unit): [number, Unit] => {
    const value = Math.floor(rest / SECONDS_PER_UNIT[unit]);
    rest %= SECONDS_PER_UNIT[unit];
    return [value, unit];
  });
  const first = values.findIndex(([value]) => value > 0);
  return first < 0 ? [] : values.slice(first, first + 2).filter(([value]) => value > 0);
}
