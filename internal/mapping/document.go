package mapping

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// span is a part of a text, in bytes: [from, to).
type span struct{ from, to uint32 }

func (s span) of(text []byte) []byte { return text[s.from:s.to] }

// node is a value of a document. The nodes of a document are in the order of its text: the first child of an object or
// list follows it, and the next value beside a node is at its end.
type node struct {
	name    span // of a member, without quotes and escapes
	value   span // without the quotes of a text
	end     int32
	count   int32 // of members or elements
	kind    jsontext.Kind
	escaped bool // the value is a text with JSON escapes
}

// document is a message, a line or a mapping as a tree.
type document struct {
	text  []byte // a copy, and after it the names that have escapes
	nodes []node
	open  []int32 // objects and lists that are not complete
	input bytes.Buffer
	dec   jsontext.Decoder
}

// maxPooledText is the size in bytes of texts whose document is used again, so that a large one does not keep its
// memory.
const maxPooledText = 16 << 10

// documents holds documents that are not in use. To make a tokenizer costs more than to read a small message.
var documents = sync.Pool{New: func() any { return &document{} }}

// borrow returns an empty document, which the caller returns with release.
func borrow() *document {
	return documents.Get().(*document) //nolint:forcetypeassert // Of documents.
}

func (d *document) release(text int) {
	if text <= maxPooledText {
		documents.Put(d)
	}
}

// missing is the node of a path that does not exist.
const missing int32 = -1

// whiteSpace is the white space of JSON.
const whiteSpace = " \t\r\n"

// byteOrderMark is what some editors write before a text in UTF-8.
var byteOrderMark = []byte("\ufeff")

// malformed is the reason why a text is not JSON: a predicate such as "is empty", and the bytes before the error.
type malformed struct {
	text string
	at   int
}

// read parses a JSON value, which must be the whole text. A repeated member, invalid UTF-8 and more than 10,000 levels
// are malformed. Time and memory are linear in the size of the text: a node takes 32 bytes and at least two of the
// text.
func (d *document) read(text []byte) *malformed {
	d.text, d.nodes, d.open = append(d.text[:0], text...), d.nodes[:0], d.open[:0]
	d.input = *bytes.NewBuffer(slices.Clip(text))
	d.dec.Reset(&d.input)
	for {
		if err := d.next(); err != nil {
			return d.explain(err, len(text))
		}
		if len(d.open) == 0 {
			break
		}
	}
	rest := bytes.TrimLeft(text[d.dec.InputOffset():], whiteSpace)
	if len(rest) > 0 {
		return &malformed{"has text after the end of its JSON value", len(text) - len(rest)}
	}
	return nil
}

// next reads a value, the name of a member with its value, or the end of an object or list.
func (d *document) next() error {
	kind := d.dec.PeekKind()
	if kind == '}' || kind == ']' {
		return d.leave()
	}
	n := node{kind: kind}
	if parent := d.parent(); parent != nil {
		parent.count++
		if parent.kind == '{' {
			if err := d.memberName(&n.name); err != nil {
				return err
			}
			n.kind = d.dec.PeekKind()
		}
	}
	if n.kind != '{' && n.kind != '[' {
		err := d.scalar(&n.value, &n.escaped)
		d.add(n)
		return err
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err //nolint:wrapcheck // Explained by the caller.
	}
	n.value.from = d.offset() - 1
	d.open = append(d.open, d.add(n))
	return nil
}

func (d *document) parent() *node {
	if len(d.open) == 0 {
		return nil
	}
	return &d.nodes[d.open[len(d.open)-1]]
}

// leave reads the end of an object or list.
func (d *document) leave() error {
	if _, err := d.dec.ReadToken(); err != nil {
		return err //nolint:wrapcheck // Explained by the caller.
	}
	n := d.parent()
	n.value.to, n.end = d.offset(), int32(len(d.nodes)) //nolint:gosec // Messages are smaller than maxMessage.
	d.open = d.open[:len(d.open)-1]
	return nil
}

// scalar reads a name, text, number, boolean or null. escaped reports whether it contains JSON escapes.
func (d *document) scalar(s *span, escaped *bool) error {
	raw, err := d.dec.ReadValue()
	if err != nil {
		return err //nolint:wrapcheck // Explained by the caller.
	}
	to := d.offset()
	*s = span{to - uint32(len(raw)), to} //nolint:gosec // Messages are smaller than maxMessage.
	if raw[0] == '"' {
		*s = span{s.from + 1, s.to - 1}
		*escaped = bytes.IndexByte(raw, '\\') >= 0
	}
	return nil
}

// memberName reads the name of a member. Its escapes are removed once, because every path is compared with it.
func (d *document) memberName(name *span) error {
	var escaped bool
	if err := d.scalar(name, &escaped); err != nil || !escaped {
		return err
	}
	text := d.unquoted(*name)
	name.from = uint32(len(d.text)) //nolint:gosec // Messages are smaller than maxMessage.
	d.text = append(d.text, text...)
	name.to = uint32(len(d.text)) //nolint:gosec // Messages are smaller than maxMessage.
	return nil
}

func (d *document) offset() uint32 { return uint32(d.dec.InputOffset()) } //nolint:gosec // See maxMessage.

// add appends a node without children and returns its position.
func (d *document) add(n node) int32 {
	at := int32(len(d.nodes)) //nolint:gosec // Messages are smaller than maxMessage.
	n.end = at + 1
	d.nodes = append(d.nodes, n)
	return at
}

// explain returns an error of the tokenizer in a text of a size in bytes.
func (d *document) explain(err error, size int) *malformed {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &malformed{"ends before its JSON value does", size}
	case !ok: // The tokenizer reached the end before any token.
		return &malformed{"is empty", 0}
	case errors.Is(err, jsontext.ErrDuplicateName):
		name := fmt.Sprintf("names the member %.100q twice", syntax.JSONPointer.LastToken())
		return &malformed{name, int(syntax.ByteOffset)}
	}
	return &malformed{"is not valid JSON", int(syntax.ByteOffset)}
}

// find returns the value at a path from a node, or missing.
func (d *document) find(at int32, steps []step) int32 {
	for i := range steps {
		switch s := &steps[i]; {
		case d.nodes[at].kind == '{':
			at = d.member(at, s.name)
		case d.nodes[at].kind == '[' && s.isIndex:
			at = d.item(at, s.index)
		default:
			return missing
		}
		if at == missing {
			return missing
		}
	}
	return at
}

func (d *document) member(object int32, name string) int32 {
	for at, end := object+1, d.nodes[object].end; at < end; at = d.nodes[at].end {
		if string(d.name(at)) == name {
			return at
		}
	}
	return missing
}

// item returns an element of a list; a negative index counts from the end.
func (d *document) item(list int32, index int) int32 {
	count := int(d.nodes[list].count)
	if index < 0 {
		index += count
	}
	if index < 0 || index >= count {
		return missing
	}
	at := list + 1
	for range index {
		at = d.nodes[at].end
	}
	return at
}

// children yields the members of an object or the elements of a list.
func (d *document) children(parent int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for at, end := parent+1, d.nodes[parent].end; at < end; at = d.nodes[at].end {
			if !yield(at) {
				return
			}
		}
	}
}

// name returns the name of a member.
func (d *document) name(at int32) []byte { return d.nodes[at].name.of(d.text) }

// content returns a text without quotes and escapes, and any other value as it was written.
func (d *document) content(at int32) []byte {
	if n := &d.nodes[at]; n.escaped {
		return d.unquoted(n.value)
	}
	return d.nodes[at].value.of(d.text)
}

// unquoted returns a text or name without its escapes.
func (d *document) unquoted(s span) []byte {
	text, _ := jsontext.AppendUnquote(nil, d.text[s.from-1:s.to+1]) // The tokenizer accepted it.
	return text
}

// written returns the part of the text that a value takes, with the quotes of a text.
func (d *document) written(at int32) span {
	n := &d.nodes[at]
	if n.kind == '"' {
		return span{n.value.from - 1, n.value.to + 1}
	}
	return n.value
}
