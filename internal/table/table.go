package table

import (
	"bytes"
	"encoding"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
)

const (
	// null stands for a value that is missing.
	null = "-"
	// gap is the number of spaces between two columns.
	gap = 2
)

// Write renders a struct. Its lists of structs become tables with a row per item; all other fields come before them,
// one per line, with the fields of structs in them as name.field. A struct that has nothing but one list, such as
// admin.List, is that table. Characters that a terminal could take for a command are escaped.
func Write(w io.Writer, object any) error {
	out := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	value := reflect.Indirect(reflect.ValueOf(object))
	lines := 0
	for _, f := range fieldsOf(value.Type(), everything) {
		if isList(f.kind) {
			continue
		}
		_, _ = fmt.Fprintf(out, "%s:\t%s\n", f.name, f.text(value))
		lines++
	}
	for _, f := range fieldsOf(value.Type(), everything) {
		if !isList(f.kind) {
			continue
		}
		if lines > 0 {
			_, _ = fmt.Fprintln(out)
		}
		writeRows(out, value.FieldByIndex(f.index))
	}
	if err := out.Flush(); err != nil { // It returns the first error of w.
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// WriteText renders what Write does for programs: without names, columns are separated by one tab. The fields of the
// struct are one line, and each item of its lists is one line.
func WriteText(w io.Writer, object any) error {
	value := reflect.Indirect(reflect.ValueOf(object))
	var out bytes.Buffer
	var cells []string
	for _, f := range fieldsOf(value.Type(), everything) {
		if !isList(f.kind) {
			cells = append(cells, f.text(value))
		}
	}
	if len(cells) > 0 {
		_, _ = fmt.Fprintln(&out, strings.Join(cells, "\t"))
	}
	for _, f := range fieldsOf(value.Type(), everything) {
		if isList(f.kind) {
			list := value.FieldByIndex(f.index)
			writeItems(&out, columnsOf(list), list)
		}
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

func writeRows(out io.Writer, list reflect.Value) {
	columns := columnsOf(list)
	names := make([]string, len(columns))
	for i, f := range columns {
		names[i] = strings.ToUpper(f.name)
	}
	_, _ = fmt.Fprintln(out, strings.Join(names, "\t"))
	writeItems(out, columns, list)
	if list.Len() == 0 {
		_, _ = fmt.Fprintln(out, "(none)")
	}
}

func writeItems(out io.Writer, columns []field, list reflect.Value) {
	cells := make([]string, len(columns))
	for i := range list.Len() {
		for j, f := range columns {
			cells[j] = f.text(list.Index(i))
		}
		_, _ = fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
}

// columnsOf returns the columns of the table of a list.
func columnsOf(list reflect.Value) []field {
	return slices.DeleteFunc(fieldsOf(list.Type().Elem(), columnsOnly), func(f field) bool { return isList(f.kind) })
}

// field is a field of a struct, or of a struct in it.
type field struct {
	name  string
	index []int // for reflect.Value.FieldByIndexErr
	kind  reflect.Type
}

// Which fields fieldsOf returns.
const (
	everything  = false
	columnsOnly = true // without those that are tagged `table:"-"`
)

// fieldsOf returns the fields of a struct with those of the structs in it.
func fieldsOf(t reflect.Type, columns bool) (fields []field) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || (columns && f.Tag.Get("table") == "-") {
			continue
		}
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Struct || kind.Implements(textMarshaler) {
			fields = append(fields, field{name, f.Index, kind})
			continue
		}
		for _, inner := range fieldsOf(kind, columns) {
			if !f.Anonymous {
				inner.name = name + "." + inner.name
			}
			inner.index = slices.Concat(f.Index, inner.index)
			fields = append(fields, inner)
		}
	}
	return fields
}

// textMarshaler is implemented by structs that are one value, such as time.Time.
var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// text returns the value of the field in a struct on one line.
func (f field) text(object reflect.Value) string {
	text, _ := f.value(object)
	if text == "" {
		return null
	}
	return printable(text)
}

// value returns the value of the field in a struct, and whether it is a text that a person chose. The value is empty if
// it is missing.
func (f field) value(object reflect.Value) (text string, chosen bool) {
	value, err := object.FieldByIndexErr(f.index)
	if err != nil { // A struct on the way to it is missing.
		return "", false
	}
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return "", false
		}
		value = value.Elem()
	}
	switch v := value.Interface().(type) {
	case encoding.TextMarshaler:
		marshaled, err := v.MarshalText()
		if err != nil {
			marshaled = fmt.Append(nil, v)
		}
		return string(marshaled), false
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), false
	case []string:
		text = strings.Join(v, ", ")
	case map[string]string:
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, key+"="+v[key])
		}
		text = strings.Join(pairs, ", ")
	default:
		text = fmt.Sprint(v)
	}
	return text, value.Kind() == reflect.String || value.Kind() == reflect.Map
}

// printable escapes control characters: a line break would end the row, and an escape sequence in
// a name would be a command to the terminal.
func printable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}
