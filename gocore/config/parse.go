package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"goshmem/gocore/status"
)

// value is a parsed setting: one of its members, by type.
type value struct {
	s     string
	n     int64
	words []string
}

// parse reads text as the setting's type.
func (s *Setting) parse(text string) (value, error) {
	text = strings.TrimSpace(text)
	v, err := s.read(text)
	if err == nil && (s.Type == Bytes || s.Type == Integer) && (v.n < s.Min || (s.Max != 0 && v.n > s.Max)) {
		err = fmt.Errorf("it must be at least %d", s.Min)
		if s.Max != 0 {
			err = fmt.Errorf("it must be %d to %d", s.Min, s.Max)
		}
	}
	if err != nil {
		shown := strconv.Quote(text)
		if s.Secret {
			shown = "(not shown)"
		}
		return value{}, status.New(status.BadConfig, "read settings", "%s=%s: %v", s.Name, shown, err)
	}
	return v, nil
}

func (s *Setting) read(text string) (v value, err error) {
	switch s.Type {
	case Text:
		v.s = text
	case Bytes:
		v.n, err = ParseBytes(text)
	case Duration:
		var d time.Duration
		d, err = ParseDuration(text)
		v.n = int64(d)
	case Integer:
		if v.n, err = strconv.ParseInt(text, 10, 32); err != nil {
			err = fmt.Errorf("not a whole number")
		}
	case Choice:
		if v.s = strings.ToLower(text); !slices.Contains(s.Choices, v.s) {
			err = fmt.Errorf("not one of %s", strings.Join(s.Choices, ", "))
		}
	case Words:
		for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(s.Choices, w) {
				return v, fmt.Errorf("%q is not one of %s", w, strings.Join(s.Choices, ", "))
			}
			v.words = append(v.words, w)
		}
	}
	return v, err
}

// ParseBytes reads a size: a number, perhaps with a fraction, and a 1024-based suffix k, m, g, t in either case, with or
// without B or iB behind it ("64", "64k", "1.5G", "512MiB"). The result is a whole number of bytes below 2^63.
func ParseBytes(text string) (int64, error) {
	low := strings.ToLower(strings.TrimSpace(text))
	end := strings.IndexFunc(low, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(low)
	}
	shift, ok := map[string]uint{
		"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20, "g": 30, "gb": 30, "gib": 30, "t": 40, "tb": 40, "tib": 40,
	}[strings.TrimSpace(low[end:])]
	if !ok || end == 0 {
		return 0, fmt.Errorf("not a size; write a number with k, m, g or t behind it, like 512m")
	}
	if n, err := strconv.ParseInt(low[:end], 10, 64); err == nil {
		if n > math.MaxInt64>>shift {
			return 0, fmt.Errorf("too large")
		}
		return n << shift, nil
	}
	f, err := strconv.ParseFloat(low[:end], 64)
	if err != nil {
		return 0, fmt.Errorf("not a size; write a number with k, m, g or t behind it, like 512m")
	}
	f *= float64(uint64(1) << shift)
	if f >= math.MaxInt64 {
		return 0, fmt.Errorf("too large")
	}
	return int64(f), nil
}

// ParseDuration reads a time: seconds, perhaps with a fraction, or Go's units ("500ms", "1h30m"). -1 is no limit, given as
// a negative duration; 0 is refused, for nothing could ever succeed in it.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		f, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil || math.IsNaN(f) || math.Abs(f) > math.MaxInt64/float64(time.Second) {
			return 0, fmt.Errorf("not a time; write seconds, or a number with ms, s, m or h, like 30s; -1 for no limit")
		}
		d = time.Duration(f * float64(time.Second))
	}
	switch {
	case d > 0:
		return d, nil
	case text == "-1":
		return -1, nil
	}
	return 0, fmt.Errorf("it must be above zero, or -1 for no limit")
}
