// Package json writes and reads the few JSON texts of the core: what PEs tell each other when they come up, and gshmem_info.
//
// It knows what those are made of: structs with `json:"name,omitempty"` tags (without one, the field's name; not the unexported ones), strings, integers,
// floats, booleans, slices, pointers to structs, and []byte as base64. The standard library's package knows everything and is 300 KiB of the
// shared library; a test compares the two.
package json

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Marshal gives the text of a value. It panics on a kind that the package does not know: that is a mistake in the type.
func Marshal(v any) []byte { return appendValue(nil, reflect.ValueOf(v), "") }

// MarshalIndent is Marshal for people: one member a line, two spaces for each level.
func MarshalIndent(v any) []byte { return appendValue(nil, reflect.ValueOf(v), "\n") }

// field is one member of an object.
type field struct {
	index int
	name  string
	omit  bool // left out when empty
}

func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		if f.IsExported() && name != "-" {
			all = append(all, field{i, name, rest == "omitempty"})
		}
	}
	return all
}

func empty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.Kind() != reflect.Struct && v.IsZero()
}

// appendValue writes v; line is what begins a new line at this depth ("" for compact text).
func appendValue(b []byte, v reflect.Value, line string) []byte {
	switch v.Kind() {
	case reflect.String:
		return appendString(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 64)
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return appendValue(b, v.Elem(), line)
	case reflect.Slice:
		return appendSlice(b, v, line)
	case reflect.Struct:
		return appendStruct(b, v, line)
	}
	panic(fmt.Sprintf("json: %v is not of a kind that this package knows", v.Type()))
}

func appendSlice(b []byte, v reflect.Value, line string) []byte {
	switch {
	case v.IsNil():
		return append(b, "null"...)
	case v.Type().Elem().Kind() == reflect.Uint8:
		return append(base64.StdEncoding.AppendEncode(append(b, '"'), v.Bytes()), '"')
	case v.Len() == 0:
		return append(b, "[]"...)
	}
	inner := deeper(line)
	for i := range v.Len() {
		b = append(append(b, "[,"[min(i, 1)]), inner...)
		b = appendValue(b, v.Index(i), inner)
	}
	return append(append(b, line...), ']')
}

func appendStruct(b []byte, v reflect.Value, line string) []byte {
	inner, written := deeper(line), 0
	for _, f := range fieldsOf(v.Type()) {
		if f.omit && empty(v.Field(f.index)) {
			continue
		}
		b = append(append(b, "{,"[min(written, 1)]), inner...)
		b = append(appendString(b, f.name), ':')
		if line != "" {
			b = append(b, ' ')
		}
		b = appendValue(b, v.Field(f.index), inner)
		written++
	}
	if written == 0 {
		return append(b, "{}"...)
	}
	return append(append(b, line...), '}')
}

func deeper(line string) string {
	if line == "" {
		return ""
	}
	return line + "  "
}

// appendString quotes s; bytes that are no UTF-8 become the replacement character.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 0x20 || r == 0x7f || r == 0x2028 || r == 0x2029:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
