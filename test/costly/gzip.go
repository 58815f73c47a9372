// Package costly makes bodies that take a receiver much longer than their size lets expect.
package costly

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// Gzip returns a gzip body of a size in bytes with a text that is short. Its blocks are empty, and the decoder reads a
// table of codes for each. Its last member is empty, too, so that the body states a text of 0 bytes.
func Gzip(size int, text string) ([]byte, error) {
	var body bytes.Buffer
	body.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255})
	var bits, filled uint
	write := func(value, width uint) {
		for bits, filled = bits|value<<filled, filled+width; filled >= 8; bits, filled = bits>>8, filled-8 {
			body.WriteByte(byte(bits & 0xff))
		}
	}
	for body.Len() < size || filled > 0 {
		write(0b100, 3)     // Not the last block, with tables of its own: 257 codes of literals, one of distances,
		write(14<<10, 14)   // 18 codes of lengths.
		for i := range 18 { // Of these, only the lengths 1 and "many zeros" occur: the 17th and the 3rd one.
			write(map[int]uint{2: 1, 17: 1}[i], 3)
		}
		write(1|(138-11)<<1, 8) // 138 and 118 zeros: no literals.
		write(1|(118-11)<<1, 8)
		write(0, 2) // One code for the end of the block, and one of distances.
		write(0, 1) // The end of the block.
	}
	deflated, err := flate.NewWriter(&body, flate.DefaultCompression)
	if err != nil {
		return nil, fmt.Errorf("compressing a text: %w", err)
	}
	last := gzip.NewWriter(&body)
	if _, err := io.WriteString(deflated, text); err != nil {
		return nil, fmt.Errorf("compressing a text: %w", err)
	}
	if err := deflated.Close(); err != nil {
		return nil, fmt.Errorf("compressing a text: %w", err)
	}
	body.Write(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
	body.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(text)))) //nolint:gosec // It is short.
	if err := last.Close(); err != nil {
		return nil, fmt.Errorf("compressing nothing: %w", err)
	}
	return body.Bytes(), nil
}
