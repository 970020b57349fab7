// An effect history that is copied to another mission. Types only.

/** A history, and the position in it of the checkpoint that it is copied with. */
export interface CarriedEffects {
  readonly bytes: Buffer;
  readonly position: number;
  readonly checkpoint: string;
}
