// An effect history on its way to another mission. Types only.

/** A history and the position of the checkpoint that it is taken along with. */
export interface CarriedEffects {
  readonly bytes: Buffer;
  readonly position: number;
  readonly checkpoint: string;
}
