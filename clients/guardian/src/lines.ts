// SPDX-License-Identifier: Apache-2.0
/**
 * Cuts a stream of bytes into lines. Works on bytes, so that a character of several bytes that
 * arrives in two pieces stays whole. A line longer than `maxBytes` is an error of the stream.
 */
export class LineSplitter {
  private pieces: Buffer[] = [];
  private size = 0;

  constructor(
    private readonly take: (line: string) => void,
    private readonly maxBytes = 1 << 30,
  ) {}

  push(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.keep(chunk.subarray(from, end));
      this.flush();
      from = end + 1;
    }
    this.keep(chunk.subarray(from));
  }

  /** What is left without a line end is a line too. */
  end(): void {
    if (this.size > 0) this.flush();
  }

  private keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.size += piece.length;
    if (this.size > this.maxBytes) {
      throw new RangeError(`a line has more than ${this.maxBytes} bytes`);
    }
    this.pieces.push(piece);
  }

  private flush(): void {
    const line = Buffer.concat(this.pieces, this.size).toString('utf8');
    this.pieces = [];
    this.size = 0;
    if (line.trim() !== '') this.take(line);
  }
}
