package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// kind is where a text comes from.
type kind int

const (
	markdownText kind = iota
	comment
	help
	logMessage
)

// text is one line of prose, or one message.
type text struct {
	kind  kind
	line  int
	words string
}

// extractors read the texts of a file, by its extension.
var extractors = map[string]func(path string, source []byte) ([]text, error){".go": goTexts, ".md": markdownTexts}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	directive  = regexp.MustCompile(`^//(go:|nolint|line |export )`)
	generated  = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
)

// markdownTexts returns the lines of a Markdown file, without code and addresses.
func markdownTexts(_ string, source []byte) ([]text, error) {
	var texts []text
	fenced := false
	for i, line := range strings.Split(string(source), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			texts = append(texts, text{markdownText, i + 1, plain(line)})
		}
	}
	return texts, nil
}

// plain replaces code by a dot, which separates words like any other sign.
func plain(line string) string {
	return linkTarget.ReplaceAllString(inlineCode.ReplaceAllString(line, "·"), "]")
}

// goTexts returns the comments of a Go file, the help texts in its struct tags, and its log messages.
func goTexts(path string, source []byte) ([]text, error) {
	if generated.Match(source) {
		return nil, nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	at := func(p token.Pos) int { return files.Position(p).Line }
	var texts []text
	for _, group := range file.Comments {
		for _, c := range group.List {
			if directive.MatchString(c.Text) {
				continue
			}
			for i, line := range strings.Split(c.Text, "\n") {
				texts = append(texts, text{comment, at(c.Pos()) + i, plain(line)})
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if words := helpOf(n); words != "" {
				texts = append(texts, text{help, at(n.Pos()), words})
			}
		case *ast.CallExpr:
			if words := messageOf(n); words != "" {
				texts = append(texts, text{logMessage, at(n.Pos()), words})
			}
		}
		return true
	})
	return texts, nil
}

// helpOf returns the help text in the tag of a field.
func helpOf(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	return reflect.StructTag(tag).Get("help")
}

// messageOf returns the message of a call that ends a zerolog event: Msg("...") or Msgf("...", ...).
func messageOf(call *ast.CallExpr) string {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || function.Sel.Name != "Msg" && function.Sel.Name != "Msgf" || len(call.Args) == 0 {
		return ""
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	words, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return words
}
