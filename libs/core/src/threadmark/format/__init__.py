"""The stored form, byte for byte: headers, bodies, packs, digests and the slices that they are made of. No I/O."""
