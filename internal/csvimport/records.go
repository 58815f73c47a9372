package csvimport

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxRecord is the most bytes of a line, and of a record with line ends in quotes.
const maxRecord = 64 << 10

// record is one record of a text. Its fields are valid until the next one is read.
type record struct {
	line   int    // number of its first line, from 1
	text   []byte // without the last line end
	fields []string
	broken bool // the quotes are wrong: there are no fields
}

// records reads records. It gives encoding/csv one record at a time: on its own, that reads the rest of a file after a
// quote that does not end.
type records struct {
	in      *bufio.Reader // has a buffer of maxRecord
	comma   rune
	quotes  bool // quotes are not ordinary characters
	line    int  // number of the last line that a record contained
	waiting [][]byte
	split   *csv.Reader
	rest    bytes.Reader // what split has not read yet
}

// next returns the next record that is not blank, or io.EOF.
func (r *records) next() (*record, error) {
	for {
		first, err := r.readLine()
		if err != nil {
			return nil, err
		}
		more, err := r.continuation(first)
		if err != nil {
			return nil, err
		}
		found := &record{line: r.line + 1, text: first}
		if len(more) > 0 {
			found.text = bytes.Join(append([][]byte{first}, more...), []byte("\n"))
		}
		if found.fields, err = r.fields(found.text); err != nil {
			found.text, found.broken = first, true
			r.waiting, more = append(more, r.waiting...), nil
		}
		r.line += 1 + len(more)
		if len(bytes.TrimSpace(found.text)) > 0 {
			return found, nil
		}
	}
}

// continuation returns the lines up to the one with the end of a quote that a line begins.
func (r *records) continuation(first []byte) (more [][]byte, err error) {
	open, size := r.quotes && hasOddQuotes(first), len(first)
	for open && size < maxRecord {
		line, err := r.readLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		more, size, open = append(more, line), size+len(line), !hasOddQuotes(line)
	}
	return more, nil
}

func hasOddQuotes(line []byte) bool { return bytes.Count(line, []byte(`"`))%2 == 1 }

// readLine returns a line without its end.
func (r *records) readLine() (line []byte, err error) {
	if len(r.waiting) > 0 {
		line, r.waiting = r.waiting[0], r.waiting[1:]
		return line, nil
	}
	line, err = r.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("a line after line %d has more than %d bytes: this is not a CSV file", r.line, maxRecord)
	case errors.Is(err, io.EOF) && len(line) == 0:
		return nil, io.EOF
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("reading after line %d: %w", r.line, err)
	}
	return bytes.Clone(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))), nil
}

// fields splits the text of a record.
func (r *records) fields(text []byte) ([]string, error) {
	if !r.quotes {
		return strings.Split(string(text), string(r.comma)), nil
	}
	if r.split == nil {
		r.split = csv.NewReader(&r.rest)
		r.split.Comma, r.split.FieldsPerRecord, r.split.ReuseRecord = r.comma, -1, true
	}
	r.rest.Reset(append(text, '\n'))
	fields, err := r.split.Read()
	if err != nil && !errors.Is(err, io.EOF) { // io.EOF is a blank line.
		r.split = nil
		return nil, err //nolint:wrapcheck // The caller only needs to know that there is one.
	}
	return fields, nil
}
