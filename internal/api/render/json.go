package render

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// member begins a member of an object, with a comma unless it is the first.
func member(dst []byte, name string) []byte {
	dst = Element(dst)
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// Element begins an Element of an array, with a comma unless it is the first.
func Element(dst []byte) []byte {
	switch dst[len(dst)-1] {
	case '{', '[':
		return dst
	}
	return append(dst, ',')
}

func appendText(dst []byte, text string) []byte {
	// AppendQuote would replace invalid UTF-8, which the database does not contain.
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
