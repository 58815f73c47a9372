package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
)

// CSV writes structs as rows of a CSV, after a header row. Fields of structs in them are columns of the form
// name.field. A missing value is an empty cell.
type CSV struct {
	out    *csv.Writer
	fields []field
	guard  func(text string) string
	cells  []string
}

// NewCSV writes the header row for structs of the type T. guard changes texts that a person chose, such as names, so
// that a spreadsheet does not run them.
func NewCSV[T any](w io.Writer, guard func(text string) string) (*CSV, error) {
	c := &CSV{out: csv.NewWriter(w), guard: guard}
	for _, f := range fieldsOf(reflect.TypeFor[T](), everything) {
		if !isList(f.kind) {
			c.fields = append(c.fields, f)
			c.cells = append(c.cells, f.name)
		}
	}
	return c, c.write()
}

// Write writes one row. Call Flush at the end.
func (c *CSV) Write(object any) error {
	value := reflect.Indirect(reflect.ValueOf(object))
	for i, f := range c.fields {
		text, chosen := f.value(value)
		if chosen {
			text = c.guard(text)
		}
		c.cells[i] = text
	}
	return c.write()
}

func (c *CSV) write() error {
	if err := c.out.Write(c.cells); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// Flush writes what is buffered.
func (c *CSV) Flush() error {
	c.out.Flush()
	if err := c.out.Error(); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
