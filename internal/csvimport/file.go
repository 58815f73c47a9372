package csvimport

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
)

// Options say where the readings are in a file. Without Time, the file is an export in the long shape.
type Options struct {
	Time       string // column
	TimeFormat mapping.TimeFormat
	Metrics    []MetricColumn

	Unit   string // column with the unit; empty if Device is set
	Units  Units  // hardware ids by the values of that column; nil if they are hardware ids
	Device string // hardware id of all lines; empty if each line has its unit

	Delimiter rune // 0 means that it is recognised
	Decimal   rune // '.' or ',', or 0 if it is recognised
	NoQuotes  bool // quotes are ordinary characters

	Now time.Time // times more than 10 minutes later are wrong (decision 41)

	device string // first device_id in an export whose lines are all of Device
}

// Line is one line of a file.
type Line struct {
	roomsensor.Measurement

	HardwareID string
	Number     int    // from 1; of the first line, if a value in quotes has line ends
	Text       []byte // without the last line end
	Problem    string // predicate that says why the line cannot be read; empty if it can
}

// IsEmpty reports whether the line can be read and has no value.
func (l *Line) IsEmpty() bool { return l.Problem == "" && l.Values.Mask() == 0 }

// File is a CSV file that is being read.
type File struct {
	Header []byte // the first line

	options      *Options
	records      records
	header       []string
	places       places
	decimalComma bool
}

var (
	gzipMark      = []byte{0x1f, 0x8b}
	byteOrderMark = []byte("\xef\xbb\xbf")
)

// Open reads the first lines of a file, also of one that is compressed with gzip, and recognises its form. Its error is
// a sentence without a period.
func Open(in io.Reader, o *Options) (*File, error) {
	b := bufio.NewReaderSize(in, maxRecord)
	if mark, _ := b.Peek(len(gzipMark)); bytes.Equal(mark, gzipMark) { // Reading finds the error.
		unpacked, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("the file is not gzip: %w", err)
		}
		b = bufio.NewReaderSize(unpacked, maxRecord)
	}
	f, err := open(b, o)
	if err != nil {
		return nil, err
	}
	if f.places, err = findColumns(f.header, o); err != nil {
		return nil, err
	}
	f.decimalComma = o.Decimal == ','
	if o.Decimal == 0 {
		f.decimalComma = f.findsDecimalComma()
	}
	return f, nil
}

// open reads the header.
func open(b *bufio.Reader, o *Options) (*File, error) {
	start, err := b.Peek(maxRecord)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the first lines: %w", err)
	}
	switch {
	case bytes.HasPrefix(start, byteOrderMark):
		start = start[len(byteOrderMark):]
		_, _ = b.Discard(len(byteOrderMark)) // They are in the buffer.
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return nil, errors.New("the file is UTF-16: save it as UTF-8")
	}
	f := &File{options: o, records: records{in: b, comma: o.Delimiter, quotes: !o.NoQuotes}}
	if f.records.comma == 0 {
		f.records.comma = delimiterOf(start)
	}
	first, err := f.records.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty")
	case err != nil:
		return nil, err
	case first.broken:
		return nil, fmt.Errorf("line %d, which must have the names of the columns, has a quote that does not end", first.line)
	}
	f.Header, f.header = first.text, slices.Clone(first.fields)
	f.addNamelessColumn()
	return f, nil
}

// addNamelessColumn adds the column that lines have beyond the header: an empty one after a delimiter at the end of
// each line, or the row numbers that R writes before the others.
func (f *File) addNamelessColumn() {
	line, err := f.sample().next()
	if err != nil || len(line.fields) != len(f.header)+1 {
		return
	}
	if line.fields[len(f.header)] == "" {
		f.header = append(f.header, "")
	} else if _, err := strconv.Atoi(line.fields[0]); err == nil {
		f.header = slices.Insert(f.header, 0, "")
	}
}

// sample returns the records of the next lines, which it does not consume.
func (f *File) sample() *records {
	text, _ := f.records.in.Peek(maxRecord) // Reading finds the error.
	if len(text) == maxRecord {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	return &records{
		in: bufio.NewReaderSize(bytes.NewReader(text), maxRecord), comma: f.records.comma, quotes: f.records.quotes,
	}
}

// delimiterOf returns the most frequent delimiter outside of quotes in the first line that is not blank.
func delimiterOf(text []byte) rune {
	line, _, _ := bytes.Cut(bytes.TrimLeft(text, "\r\n"), []byte("\n"))
	count, quoted := map[byte]int{}, false
	for _, c := range line {
		if c == '"' {
			quoted = !quoted
		}
		if !quoted {
			count[c]++
		}
	}
	best := byte(',')
	for _, c := range []byte(";\t") {
		if count[c] > count[best] {
			best = c
		}
	}
	return rune(best)
}

// findsDecimalComma reports whether the numbers of the first lines have decimal commas: one has a comma, and none has a
// point. A comma before exactly three digits may separate thousands, and proves nothing.
func (f *File) findsDecimalComma() bool {
	sample, found := f.sample(), false
	for {
		line, err := sample.next()
		if err != nil {
			return found
		}
		for i := range f.places.metrics {
			at := f.places.metrics[i].index
			if at < 0 || len(line.fields) != len(f.header) {
				continue
			}
			if strings.Contains(line.fields[at], ".") {
				return false
			}
			_, decimals, comma := strings.Cut(strings.TrimSpace(line.fields[at]), ",")
			found = found || (comma && len(decimals) != 3)
		}
	}
}

// Next returns the next line, or io.EOF. Any other error is a sentence without a period: the rest cannot be read.
func (f *File) Next() (*Line, error) {
	r, err := f.records.next()
	if err != nil {
		return nil, err
	}
	l := &Line{Number: r.line, Text: r.text}
	switch {
	case r.broken:
		l.Problem = "has a quote that does not end, or one inside a value"
	case len(r.fields) != len(f.header):
		l.Problem = fmt.Sprintf("has %d values, but the first line %d columns", len(r.fields), len(f.header))
	default:
		l.Problem = f.read(l, r.fields)
	}
	return l, nil
}

// read reads the fields of a line. problem is a predicate.
func (f *File) read(l *Line, fields []string) (problem string) {
	if l.HardwareID, problem = f.unit(fields); problem != "" {
		return problem
	}
	var ok bool
	cell := strings.TrimSpace(fields[f.places.time])
	if l.MeasuredAt, ok = f.options.TimeFormat.Parse([]byte(cell)); !ok {
		return fmt.Sprintf("has %.100q, which is not a time in this format", cell)
	}
	latest := f.options.Now.Add(roomsensor.MeasuredAhead)
	if l.MeasuredAt.Before(roomsensor.MeasuredFrom) || l.MeasuredAt.After(latest) {
		return fmt.Sprintf("has the time %.100q, which is before 2015 or in the future", cell)
	}
	l.Values, problem = f.places.values(fields, f.decimalComma)
	return problem
}

// unit returns the hardware id of a line.
func (f *File) unit(fields []string) (hardware, problem string) {
	o := f.options
	value := ""
	if f.places.unit >= 0 {
		value = strings.TrimSpace(fields[f.places.unit])
	}
	switch {
	case o.Device != "":
		if o.device == "" {
			o.device = strings.Clone(value)
		}
		if value != o.device {
			return "", "belongs to another device than the lines before it: give --units in place of --device"
		}
		return o.Device, ""
	case o.Units != nil && f.places.name >= 0:
		return o.Units.find(value, fields[f.places.name])
	case o.Units != nil:
		return o.Units.find(value)
	case !roomsensor.IsHardwareID(value):
		return "", fmt.Sprintf("has the unit %.100q, which is not a hardware id, dev: and 1 to 20 digits: give --units",
			value)
	}
	return value, ""
}
