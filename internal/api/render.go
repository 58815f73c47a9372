package api

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// JSON is appended by hand: bodies of 1,000 items are the common case, and
// numbers and times have forms of their own (decision 1).

// member begins a member of an object, after a comma where it is not the first.
func member(dst []byte, name string) []byte {
	dst = element(dst)
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// element begins an element of an array.
func element(dst []byte) []byte {
	switch dst[len(dst)-1] {
	case '{', '[':
		return dst
	}
	return append(dst, ',')
}

func appendText(dst []byte, text string) []byte {
	// Invalid UTF-8, which the database does not hold, would be replaced.
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}

func appendOptionalText(dst []byte, text *string) []byte {
	if text == nil {
		return appendNull(dst)
	}
	return appendText(dst, *text)
}

func appendNull(dst []byte) []byte { return append(dst, "null"...) }

func appendID(dst []byte, id uuid.UUID) []byte {
	dst = append(dst, '"')
	dst = append(dst, id.String()...)
	return append(dst, '"')
}

func appendInstant(dst []byte, at time.Time) []byte {
	dst = append(dst, '"')
	dst = roomsensor.AppendTime(dst, at)
	return append(dst, '"')
}

func appendOptionalInstant(dst []byte, at *time.Time) []byte {
	if at == nil {
		return appendNull(dst)
	}
	return appendInstant(dst, *at)
}

func appendOptionalInt[T int16 | int32](dst []byte, n *T) []byte {
	if n == nil {
		return appendNull(dst)
	}
	return strconv.AppendInt(dst, int64(*n), 10)
}

// beginList and endList append the envelope of every list (decision 9).
func beginList(dst []byte) []byte { return append(dst, `{"data":[`...) }

func endList(dst []byte, next *string) []byte {
	dst = appendOptionalText(member(append(dst, ']'), "next_cursor"), next)
	return append(dst, '}')
}
