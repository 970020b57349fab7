// Formats times, sizes and counts for people.

export { formatCount } from "../../platform/count.ts";
export { formatDuration } from "../../platform/duration.ts";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** 1536 → "1.5 KiB" */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** UTC to the second: "2026-11-15 23:53:01Z". */
export function formatTime(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return "invalid time";
  return `${date.toISOString().slice(0, 19).replace("T", " ")}Z`;
}
