package table

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"reflect"
)

// WriteCSV writes structs as rows of a CSV, after a header row. Fields of structs in them are columns of the form
// name.field. A missing value is an empty cell. guard changes texts that a person chose, such as names, so that a
// spreadsheet does not run them. After an error of the items, what is buffered is not written: before the first item,
// the output stays empty.
func WriteCSV[T any](w io.Writer, items iter.Seq2[T, error], guard func(text string) string) error {
	out := csv.NewWriter(w)
	var fields []field
	var cells []string
	for _, f := range fieldsOf(reflect.TypeFor[T](), everything) {
		if !isList(f.kind) {
			fields, cells = append(fields, f), append(cells, f.name)
		}
	}
	err := out.Write(cells)
	for item, failure := range items {
		if failure != nil {
			return failure
		}
		if err != nil { // A closed pipe ends the reading of items.
			break
		}
		value := reflect.Indirect(reflect.ValueOf(item))
		for i, f := range fields {
			text, chosen := f.value(value)
			if chosen {
				text = guard(text)
			}
			cells[i] = text
		}
		err = out.Write(cells)
	}
	out.Flush()
	if err = cmp.Or(err, out.Error()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
