package upload

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// malformed says why a text is no upload at all, and where it shows.
type malformed struct {
	text string // a sentence for whoever made the text
	at   int    // bytes before it
}

func malformedAt(what string, at int) *malformed {
	return &malformed{fmt.Sprintf("%s, at byte %d.", what, at+1), at}
}

// explain puts an error of the tokenizer into words.
func (d *document) explain(err error) *malformed {
	if err == nil {
		return nil
	}
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &malformed{"It ends before its JSON object does.", len(d.text)}
	case !ok: // It met the end before anything else.
		return &malformed{text: "It is empty."}
	case errors.Is(err, jsontext.ErrDuplicateName):
		twice := fmt.Sprintf("It names the member %.100q twice", syntax.JSONPointer.LastToken())
		return malformedAt(twice, int(syntax.ByteOffset))
	}
	return malformedAt("It is no valid JSON", int(syntax.ByteOffset))
}
