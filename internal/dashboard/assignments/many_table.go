package assignments

import (
	"encoding/csv"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

const (
	// maxManyLines and maxManyBytes bound a table that a person sends.
	maxManyLines = 1000
	maxManyBytes = 256 << 10
	// MaxManyForm is the size of its form: a browser sends most signs as three.
	MaxManyForm = 3*maxManyBytes + 4<<10
	// noValue is a cell that removes what the device has. An empty cell changes nothing.
	noValue = "-"
	// byteOrderMark begins a CSV that Excel wrote, or will read.
	byteOrderMark = "\ufeff"
	tagColumn     = "tag:"
)

// manyColumns are the columns of a table besides those of tags. The first three find the device.
var manyColumns = []string{"device id", "hardware id", "name", "new name", "tags", "person", "place", "since"}

// manyLine is a line of a table: its cells by column, without empty ones.
type manyLine struct {
	Number int
	cells  map[string]string
}

// manyProblem is why a line of a table cannot be used.
type manyProblem struct {
	Line int
	Text string
}

// readMany reads a table whose cells are separated by tabs, semicolons or commas. The first line names the columns.
func readMany(text string) (lines []manyLine, problems []manyProblem) {
	refuse := func(line int, text string) { problems = append(problems, manyProblem{line, text}) }
	if len(text) > maxManyBytes {
		refuse(1, "The table has more than 256 KB. Send it in parts.")
		return nil, problems
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, byteOrderMark)))
	r.Comma, r.FieldsPerRecord = separatorOf(text), -1
	r.LazyQuotes = r.Comma == '\t' // Spreadsheets copy a cell such as 5" pipe as it is.
	var columns []string
	for {
		cells, err := r.Read()
		if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
			refuse(wrong.StartLine, "A quotation mark is not closed, or is inside of a cell without quotation marks.")
		}
		if err != nil {
			break
		}
		number, _ := r.FieldPos(0)
		if columns == nil {
			var problem string
			if columns, problem = readColumns(cells); problem != "" {
				refuse(number, problem)
				break
			}
			continue
		}
		if len(lines) == maxManyLines {
			refuse(number, "The table has more than 1,000 lines. Send it in parts.")
			break
		}
		line, complete := newManyLine(number, columns, cells)
		if !complete {
			refuse(number, "The line has a cell that belongs to no column.")
		}
		if len(line.cells) > 0 {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 && len(problems) == 0 {
		refuse(1, "The table is empty. Paste a line with the names of the columns, and a line for each device.")
	}
	return lines, problems
}

// newManyLine returns a line. complete is false if a cell belongs to no column.
func newManyLine(number int, columns, cells []string) (line manyLine, complete bool) {
	line, complete = manyLine{number, map[string]string{}}, true
	for i, cell := range cells {
		switch cell = strings.TrimSpace(cell); {
		case cell == "":
		case i >= len(columns), columns[i] == "":
			complete = false
		default:
			line.cells[columns[i]] = cell
		}
	}
	return line, complete
}

// separatorOf returns what separates the cells: of tab, semicolon and comma, the most frequent one of the first line.
func separatorOf(text string) rune {
	first, _, _ := strings.Cut(strings.TrimLeft(text, byteOrderMark+"\r\n"), "\n")
	return slices.MaxFunc([]rune{'\t', ';', ','}, func(a, b rune) int {
		return strings.Count(first, string(a)) - strings.Count(first, string(b))
	})
}

// readColumns reads the names of columns; one without a name is empty. problem is a sentence, or empty.
func readColumns(cells []string) (columns []string, problem string) {
	for _, cell := range cells {
		cell = strings.TrimSpace(cell)
		column := strings.ReplaceAll(strings.ToLower(cell), "_", " ")
		if strings.HasPrefix(column, tagColumn) {
			key := strings.TrimSpace(cell[len(tagColumn):])
			if err := roomsensor.CheckMetadataKey(key); err != nil {
				return nil, "The column “" + cell + "” " + err.Error() + "."
			}
			column = tagColumn + key
		} else if column != "" && !slices.Contains(manyColumns, column) {
			return nil, "There is no column “" + cell + "”. The columns are " + strings.Join(manyColumns, ", ") + " and tag:KEY."
		}
		if column != "" && slices.Contains(columns, column) {
			return nil, "The column “" + cell + "” occurs twice."
		}
		columns = append(columns, column)
	}
	if !slices.ContainsFunc(manyColumns[:3], func(finds string) bool { return slices.Contains(columns, finds) }) {
		return nil, "The first line must name the columns, and one of them must be device_id, hardware_id or name."
	}
	return columns, ""
}

// lineEnds makes the ends of lines those that a CSV reader returns.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// cellOf returns a text as a table has it, guarded against spreadsheets that run formulas.
func cellOf(text string) string { return strings.TrimSpace(lineEnds.Replace(csvenc.Guard(text))) }

// edited reads a cell that replaces a text; a nil text is none. changes is false if the cell is empty or has that text.
func edited(cell string, present *string) (next *string, changes bool) {
	switch {
	case cell == "", present != nil && cell == cellOf(*present):
		return nil, false
	case cell == noValue:
		return nil, present != nil
	}
	if unguarded, ok := strings.CutPrefix(cell, "'"); ok && csvenc.Guard(unguarded) == cell {
		cell = unguarded
	}
	return &cell, true
}

// writeMany writes the table of some devices, so that a person can edit it. The units name the devices if each has
// another one.
func writeMany(out io.Writer, devices []roomsensor.Device, separator rune) error {
	units, keys := map[string]bool{}, map[string]bool{}
	for i := range devices {
		units[devices[i].HardwareID] = true
		for key := range devices[i].Metadata {
			keys[key] = true
		}
	}
	tags := slices.Sorted(maps.Keys(keys))
	tags = tags[:min(len(tags), roomsensor.MaxMetadataKeys)]
	w := csv.NewWriter(out)
	w.Comma = separator
	header := []string{"hardware_id", "new name"}
	byID := len(units) < len(devices)
	if byID {
		header[0] = "device_id"
	}
	for _, key := range tags {
		header = append(header, tagColumn+key)
	}
	_ = w.Write(append(header, "person", "place", "since")) // Flush returns its error.
	for i := range devices {
		d := &devices[i]
		cells := []string{d.HardwareID, cellOf(wording.TextOr(d.DisplayName, ""))}
		if byID {
			cells[0] = d.ID.String()
		}
		for _, key := range tags {
			cells = append(cells, cellOf(d.Metadata[key]))
		}
		person, place := assigned(d)
		_ = w.Write(append(cells, cellOf(wording.TextOr(person, "")), cellOf(wording.TextOr(place, "")), ""))
	}
	w.Flush()
	return w.Error() //nolint:wrapcheck // The page explains it.
}

// assigned returns the label of the open assignment of a device as that of a person or of a place; nil for none.
func assigned(d *roomsensor.Device) (person, place *string) {
	open := d.ActiveAssignment
	switch {
	case open == nil:
		return nil, nil
	case open.Type == roomsensor.Athlete:
		return &open.Label, nil
	}
	return nil, &open.Label
}
