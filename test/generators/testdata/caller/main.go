// Caller calls every operation of a generated client once. Its arguments are the base URL, an API key and a device id.
// For each operation it prints "ok METHOD PATH", or what is wrong.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"caller/generated"
)

// parameters are those that an operation requires, and some others, by the name of their field.
var parameters = map[string]string{
	"Interval": `"1h"`, "Limit": `1`, "Metadata": `{"metadata.floor": "2"}`, "Last": `"2d"`,
	"Since": time.Now().Add(-time.Hour).UTC().Format(`"2006-01-02T15:04:05Z"`),
}

// body is that of a change.
const body = `{"metadata": {"room": "12", "wing": null}}`

func main() {
	base, key, device := os.Args[1], os.Args[2], os.Args[3]
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}
	client, err := generated.NewClientWithResponses(base, generated.WithRequestEditorFn(authorize))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	v := reflect.ValueOf(client)
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		if strings.HasSuffix(name, "WithResponse") && !strings.HasSuffix(name, "WithBodyWithResponse") {
			fmt.Println(call(v.Method(i), name, device))
		}
	}
}

// call calls a method with a context, perhaps a device id, perhaps parameters, and perhaps a body.
func call(method reflect.Value, name, device string) string {
	args := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < method.Type().NumIn()-1; i++ {
		arg := reflect.New(method.Type().In(i))
		var text string
		switch kind := method.Type().In(i).Kind(); {
		case kind == reflect.Array || kind == reflect.String:
			text = fmt.Sprintf("%q", device)
		case kind == reflect.Pointer:
			arg.Elem().Set(fill(method.Type().In(i).Elem()))
		default:
			text = body
		}
		if text != "" {
			if err := json.Unmarshal([]byte(text), arg.Interface()); err != nil {
				return fmt.Sprintf("%s: %v", name, err)
			}
		}
		args = append(args, arg.Elem())
	}
	results := method.Call(args)
	if err, _ := results[1].Interface().(error); err != nil {
		return fmt.Sprintf("%s: %v", name, err)
	}
	return check(results[0].Elem())
}

// fill returns a pointer to parameters.
func fill(kind reflect.Type) reflect.Value {
	p := reflect.New(kind)
	for i := range kind.NumField() {
		if text, ok := parameters[kind.Field(i).Name]; ok {
			if err := json.Unmarshal([]byte(text), p.Elem().Field(i).Addr().Interface()); err != nil {
				panic(err)
			}
		}
	}
	return p
}

// check compares the body of a response with what the generated types hold of it.
func check(result reflect.Value) string {
	response := result.FieldByName("HTTPResponse").Interface().(*http.Response)
	received := result.FieldByName("Body").Bytes()
	operation := response.Request.Method + " " + response.Request.URL.Path
	if response.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s: %s %s", operation, response.Status, received)
	}
	if decoded := result.FieldByName("JSON200"); decoded.IsValid() {
		if decoded.IsNil() {
			return operation + ": the body was not decoded"
		}
		encoded, err := json.Marshal(decoded.Interface())
		if err != nil || !equal(received, encoded) {
			return fmt.Sprintf("%s: %v: %s became %s", operation, err, received, encoded)
		}
		// The change feed has no end, and may have an empty page before its next one.
		if bytes.Contains(received, []byte(`"data":[]`)) && bytes.Contains(received, []byte(`"next_cursor":null`)) {
			return operation + ": the list is empty"
		}
	}
	return "ok " + operation
}

// equal reports whether two texts are the same JSON.
func equal(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
