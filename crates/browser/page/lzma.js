// Unpacks LZMA, which takes three quarters of gzip's size for the module; browsers themselves unpack gzip only.
// The format is Igor Pavlov's, as his specification in the LZMA SDK describes it ("LZMA specification (DRAFT version)", 2015).
"use strict";

/** The bytes of a `.lzma` file whose header has their number. */
function unlzma(data) {
  const header = new DataView(data.buffer, data.byteOffset, 13);
  const settings = header.getUint8(0);
  const lc = settings % 9;
  const lp = Math.floor(settings / 9) % 5;
  const pb = Math.floor(settings / 45);
  const out = new Uint8Array(header.getUint32(5, true));

  // Places of the probabilities in one array: of decisions, lengths, slots and low bits of distances, and literals.
  const [MATCH, REP, REP0, REP0_LONG, REP1, REP2] = [0, 192, 204, 216, 408, 420];
  const [LENGTH, REP_LENGTH, SLOTS, NEAR, ALIGN, LITERALS] = [432, 946, 1460, 1716, 1831, 1847];
  const chances = new Uint16Array(LITERALS + (0x300 << (lc + lp))).fill(1024);

  // Range and code of the decoder, in an array that keeps 32 bits without a sign: a quarter faster than variables.
  const coder = Uint32Array.of(0xffffffff, 0);
  // The first byte after the header is always 0.
  let at = 14;
  for (let i = 0; i < 4; i++) coder[1] = (coder[1] << 8) | data[at++];
  const fill = () => {
    coder[0] <<= 8;
    coder[1] = (coder[1] << 8) | data[at++];
  };

  const bit = (place) => {
    const chance = chances[place];
    const bound = Math.imul(coder[0] >>> 11, chance) >>> 0;
    const found = coder[1] < bound ? 0 : 1;
    if (found) {
      coder[0] -= bound;
      coder[1] -= bound;
      chances[place] = chance - (chance >> 5);
    } else {
      coder[0] = bound;
      chances[place] = chance + ((2048 - chance) >> 5);
    }
    if (coder[0] < 0x1000000) fill();
    return found;
  };
  /** A number of `bits` bits, the highest first. */
  const tree = (place, bits) => {
    let node = 1;
    for (let i = 0; i < bits; i++) node = (node << 1) | bit(place + node);
    return node - (1 << bits);
  };
  /** A number of `bits` bits, the lowest first. */
  const reverse = (place, bits) => {
    let [node, value] = [1, 0];
    for (let i = 0; i < bits; i++) {
      const one = bit(place + node);
      node = (node << 1) | one;
      value |= one << i;
    }
    return value;
  };
  /** A number of `bits` bits without probabilities. */
  const direct = (bits) => {
    let value = 0;
    for (let i = 0; i < bits; i++) {
      coder[0] >>>= 1;
      const one = coder[1] >= coder[0] ? 1 : 0;
      if (one) coder[1] -= coder[0];
      if (coder[0] < 0x1000000) fill();
      value = ((value << 1) | one) >>> 0;
    }
    return value;
  };
  const length = (place, position) => {
    if (!bit(place)) return 2 + tree(place + 2 + (position << 3), 3);
    if (!bit(place + 1)) return 10 + tree(place + 130 + (position << 3), 3);
    return 18 + tree(place + 258, 8);
  };

  let [state, done, rep0, rep1, rep2, rep3] = [0, 0, 0, 0, 0, 0];
  while (done < out.length) {
    const position = done & ((1 << pb) - 1);
    if (!bit(MATCH + (state << 4) + position)) {
      const before = done ? out[done - 1] : 0;
      const place = LITERALS + 0x300 * (((done & ((1 << lp) - 1)) << lc) + (before >> (8 - lc)));
      let node = 1;
      if (state >= 7) {
        // After a match, the byte at its distance is a hint.
        let hint = out[done - rep0 - 1];
        while (node < 0x100) {
          const expected = (hint >> 7) & 1;
          hint <<= 1;
          const found = bit(place + ((1 + expected) << 8) + node);
          node = (node << 1) | found;
          if (found !== expected) break;
        }
      }
      while (node < 0x100) node = (node << 1) | bit(place + node);
      out[done++] = node;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let count = 1;
    if (bit(REP + state)) {
      let short = false;
      if (!bit(REP0 + state)) {
        short = !bit(REP0_LONG + (state << 4) + position);
      } else if (!bit(REP1 + state)) {
        [rep0, rep1] = [rep1, rep0];
      } else if (!bit(REP2 + state)) {
        [rep0, rep1, rep2] = [rep2, rep0, rep1];
      } else {
        [rep0, rep1, rep2, rep3] = [rep3, rep0, rep1, rep2];
      }
      if (!short) count = length(REP_LENGTH, position);
      state = short ? (state < 7 ? 9 : 11) : state < 7 ? 8 : 11;
    } else {
      [rep1, rep2, rep3] = [rep0, rep1, rep2];
      count = length(LENGTH, position);
      state = state < 7 ? 7 : 10;
      const slot = tree(SLOTS + (Math.min(count - 2, 3) << 6), 6);
      rep0 = slot;
      if (slot > 3) {
        const bits = (slot >> 1) - 1;
        rep0 = ((2 | (slot & 1)) << bits) >>> 0;
        if (slot < 14) rep0 += reverse(NEAR + rep0 - slot, bits);
        else rep0 += direct(bits - 4) * 16 + reverse(ALIGN, 4);
      }
    }
    if (rep0 >= done) throw new Error("the packed module is damaged");
    for (let end = Math.min(done + count, out.length); done < end; done++) out[done] = out[done - rep0 - 1];
  }
  return out;
}
