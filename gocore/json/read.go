package json

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// depthMost bounds nesting, so that no text exhausts the stack.
const depthMost = 32

// Unmarshal reads text into the value that `to` points to. Members it does not know are skipped; what is missing stays as it is; null
// leaves a zero value. A failure names the place in the text, and the value may be half written then.
func Unmarshal(text []byte, to any) (err error) {
	r := &reader{text: string(text)}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case badText:
			err = fmt.Errorf("json: %s at byte %d of %d", string(p), r.at, len(r.text))
		default:
			panic(p)
		}
	}()
	r.value(reflect.ValueOf(to).Elem())
	r.space()
	if r.at != len(r.text) {
		r.fail("something follows the value")
	}
	return nil
}

// reader walks over a text; what is wrong with it ends the walk as a badText.
type reader struct {
	text  string
	at    int
	depth int
}

type badText string

func (r *reader) fail(words string) { panic(badText(words)) }

func (r *reader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
}

// next skips space and says whether c follows; if so it is taken.
func (r *reader) next(c byte) bool {
	r.space()
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *reader) need(c byte) {
	if !r.next(c) {
		r.fail("'" + string(c) + "' is missing")
	}
}

// list runs item for each one between open and closing.
func (r *reader) list(open, closing byte, item func()) {
	r.need(open)
	if r.depth++; r.depth > depthMost {
		r.fail("too deep")
	}
	for first := true; !r.next(closing); first = false {
		if !first {
			r.need(',')
		}
		item()
	}
	r.depth--
}

// word takes letters, digits and signs: a number, true, false or null.
func (r *reader) word() string {
	r.space()
	from := r.at
	for r.at < len(r.text) && (strings.IndexByte("+-.", r.text[r.at]) >= 0 || r.text[r.at]|0x20 >= 'a' && r.text[r.at]|0x20 <= 'z' || r.text[r.at] >= '0' && r.text[r.at] <= '9') {
		r.at++
	}
	return r.text[from:r.at]
}

func (r *reader) null() bool {
	r.space()
	if strings.HasPrefix(r.text[r.at:], "null") {
		r.at += 4
		return true
	}
	return false
}

func (r *reader) value(v reflect.Value) {
	if r.null() {
		v.SetZero()
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.quoted())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(v.Elem())
	case reflect.Slice:
		r.slice(v)
	case reflect.Struct:
		r.object(v)
	default:
		r.scalar(v)
	}
}

func (r *reader) scalar(v reflect.Value) {
	word, err := r.word(), error(nil)
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(word == "true")
		if word != "true" && word != "false" {
			r.fail("no boolean")
		}
	case v.CanInt():
		var n int64
		n, err = strconv.ParseInt(word, 10, v.Type().Bits())
		v.SetInt(n)
	case v.CanUint():
		var n uint64
		n, err = strconv.ParseUint(word, 10, v.Type().Bits())
		v.SetUint(n)
	case v.CanFloat():
		var n float64
		n, err = strconv.ParseFloat(word, v.Type().Bits())
		v.SetFloat(n)
	default:
		panic(fmt.Sprintf("json: %v is not of a kind that this package knows", v.Type()))
	}
	if err != nil {
		r.fail("no " + v.Kind().String())
	}
}

func (r *reader) slice(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b, err := base64.StdEncoding.DecodeString(r.quoted())
		if err != nil {
			r.fail("no base64")
		}
		v.SetBytes(b)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	r.list('[', ']', func() {
		one := reflect.New(v.Type().Elem()).Elem()
		r.value(one)
		v.Set(reflect.Append(v, one))
	})
}

func (r *reader) object(v reflect.Value) {
	fields := fieldsOf(v.Type())
	r.list('{', '}', func() {
		name := r.quoted()
		r.need(':')
		for _, f := range fields {
			if f.name == name {
				r.value(v.Field(f.index))
				return
			}
		}
		r.skip()
	})
}

// skip passes over a value of any kind.
func (r *reader) skip() {
	r.space()
	switch {
	case r.at == len(r.text):
		r.fail("a value is missing")
	case r.text[r.at] == '"':
		r.quoted()
	case r.text[r.at] == '[':
		r.list('[', ']', r.skip)
	case r.text[r.at] == '{':
		r.list('{', '}', func() {
			r.quoted()
			r.need(':')
			r.skip()
		})
	case r.word() == "":
		r.fail("no value")
	}
}

func (r *reader) quoted() string {
	r.need('"')
	var b []byte
	for r.at < len(r.text) {
		c := r.text[r.at]
		r.at++
		switch {
		case c == '"':
			return string(b)
		case c == '\\':
			b = r.escape(b)
		default:
			b = append(b, c)
		}
	}
	r.fail("a string does not end")
	return ""
}

func (r *reader) escape(b []byte) []byte {
	if r.at == len(r.text) {
		r.fail("a string does not end")
	}
	c := r.text[r.at]
	r.at++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		return append(b, "\"\\/\b\f\n\r\t"[i])
	}
	if c != 'u' {
		r.fail("an unknown escape")
	}
	one := r.hex()
	if utf16.IsSurrogate(one) && strings.HasPrefix(r.text[r.at:], `\u`) {
		r.at += 2
		one = utf16.DecodeRune(one, r.hex())
	}
	return utf8.AppendRune(b, one)
}

func (r *reader) hex() rune {
	if len(r.text)-r.at < 4 {
		r.fail("a string does not end")
	}
	n, err := strconv.ParseUint(r.text[r.at:r.at+4], 16, 32)
	if err != nil {
		r.fail("no hexadecimal number")
	}
	r.at += 4
	return rune(n)
}
