package table_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/table"
)

type base struct {
	ID     string `json:"id"`
	Secret string `json:"-"`
}

type room struct {
	Label string `json:"label"`
	Floor int    `json:"floor" table:"-"`
}

type item struct {
	base

	Name   *string           `json:"name"`
	Tags   map[string]string `json:"tags"   table:"-"`
	Scopes []string          `json:"scopes"`
	Room   *room             `json:"room"`
	Chunks []room            `json:"chunks,omitempty"`
}

type list struct {
	Data []item `json:"data"`
}

func render(t *testing.T, object any) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, table.Write(&out, object))
	return out.String()
}

func TestWriteList(t *testing.T) {
	t.Parallel()
	full := item{
		base: base{"1", "hidden"}, Name: new("Gym"), Tags: map[string]string{"a": "1"}, Scopes: []string{"read", "write"},
		Room: &room{"Hall", 2}, Chunks: []room{{"x", 1}},
	}
	require.Equal(t, ""+
		"ID  NAME  SCOPES       ROOM.LABEL\n"+
		"1   Gym   read, write  Hall\n"+
		"20  -     -            -\n", render(t, list{[]item{full, {base: base{ID: "20"}}}}))
	require.Equal(t, "ID  NAME  SCOPES  ROOM.LABEL\n(none)\n", render(t, list{}))
}

func TestWriteObject(t *testing.T) {
	t.Parallel()
	require.Equal(t, ""+
		"id:          1\n"+
		"name:        -\n"+
		"tags:        a=1, b=\n"+
		"scopes:      read\n"+
		"room.label:  Hall\n"+
		"room.floor:  2\n"+
		"\n"+
		"LABEL\n"+
		"x\n", render(t, &item{
		base: base{"1", "hidden"}, Tags: map[string]string{"b": "", "a": "1"}, Scopes: []string{"read"},
		Room: &room{"Hall", 2}, Chunks: []room{{"x", 1}},
	}))
}

func TestWriteText(t *testing.T) {
	t.Parallel()
	text := func(object any) string {
		var out strings.Builder
		require.NoError(t, table.WriteText(&out, object))
		return out.String()
	}
	require.Equal(t, "1\t-\ta=1\tread, write\tHall\t2\nx\n", text(&item{
		base: base{"1", "hidden"}, Tags: map[string]string{"a": "1"}, Scopes: []string{"read", "write"},
		Room: &room{"Hall", 2}, Chunks: []room{{"x", 1}},
	}))
	require.Equal(t, "1\tGym\t-\t-\n2\t-\t-\t-\n", text(list{[]item{{base: base{ID: "1"}, Name: new("Gym")}, {base: base{ID: "2"}}}}))
	require.Empty(t, text(list{}))
	require.Equal(t, "a\\tb\t0\n", text(room{Label: "a\tb"}), "a tab only separates values")
}

// A name or a payload must not control the terminal, break a row, or hide text behind a direction mark.
func TestWriteControlCharacters(t *testing.T) {
	t.Parallel()
	text := "a\x1b[2J\r\n\tb\u009b\u202e\xff é 体育館"
	require.Equal(t, "label:  a\\x1b[2J\\r\\n\\tb\\u009b\\u202e\ufffd é 体育館\nfloor:  0\n", render(t, room{Label: text}))
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestWriteError(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, table.Write(closedWriter{}, room{}), "writing the result: closed")
	require.ErrorContains(t, table.WriteText(closedWriter{}, room{}), "writing the result: closed")
}

type measured struct {
	At    time.Time         `json:"at"`
	Value *float64          `json:"value"`
	Name  *string           `json:"name"`
	Tags  map[string]string `json:"tags"`
	Room  *room             `json:"room"`
	Ended *time.Time        `json:"ended"`
}

func TestCSV(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 10, 0, 0, 5000, time.UTC)
	rows := []measured{
		{At: at, Value: new(-21.4), Name: new("=Gym"), Tags: map[string]string{"b": "2", "a": "1"}, Room: &room{"Hall, north", 2}, Ended: &at},
		{At: at, Value: new(0.0000001)},
	}
	var out strings.Builder
	items := func(yield func(measured, error) bool) { _ = yield(rows[0], nil) && yield(rows[1], nil) }
	require.NoError(t, table.WriteCSV(&out, items, func(text string) string { return strings.Replace(text, "=G", "'=G", 1) }))
	require.Equal(t, ""+
		"at,value,name,tags,room.label,room.floor,ended\n"+
		"2026-11-20T10:00:00.000005Z,-21.4,'=Gym,\"a=1, b=2\",\"Hall, north\",2,2026-11-20T10:00:00.000005Z\n"+
		"2026-11-20T10:00:00.000005Z,0.0000001,,,,,\n", out.String())
	require.Contains(t, render(t, rows[1]), "at:          2026-11-20T10:00:00.000005Z\nvalue:       0.0000001\nname:        -\n")
}
