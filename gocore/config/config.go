package config

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"goshmem/gocore/status"
)

// Source says where a value came from.
type Source string

// The sources, from strongest to weakest.
const (
	FromOption      Source = "option"
	FromEnvironment Source = "environment"
	FromDefault     Source = "default"
)

// Origin is one setting as it was resolved.
type Origin struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // as written; "(set)" for a secret
	Source Source `json:"source"`
}

// Lookup finds an environment variable; os.LookupEnv in programs.
type Lookup func(name string) (string, bool)

// Read resolves every setting: options (keyed by setting name; empty strings count as given) over environment over default.
// A nil lookup is the process' environment. The first value that cannot be read is the error.
func Read(options map[string]string, lookup Lookup) (*Config, error) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	c := &Config{}
	known := map[string]bool{}
	for _, s := range Settings() {
		known[s.Name] = true
		text, from := s.Default, FromDefault
		if e, ok := lookup(s.Name); ok && strings.TrimSpace(e) != "" {
			text, from = e, FromEnvironment
		}
		if o, ok := options[s.Name]; ok {
			text, from = o, FromOption
		}
		v, err := s.parse(text)
		if err != nil {
			return nil, err
		}
		c.assign(s.Name, v)
		c.origins = append(c.origins, Origin{s.Name, s.shown(text), from})
	}
	for name := range options {
		if !known[name] {
			return nil, status.New(status.Internal, "read settings", "option %q is no setting", name)
		}
	}
	return c, c.check()
}

// check refuses values that are fine alone and wrong together.
func (c *Config) check() error {
	if c.Rank >= 0 && c.Size >= 0 && c.Rank >= c.Size {
		return status.New(status.BadConfig, "read settings", "SHMEM_RANK=%d is not below SHMEM_SIZE=%d", c.Rank, c.Size)
	}
	if c.Size == 0 {
		return status.New(status.BadConfig, "read settings", "SHMEM_SIZE=0: a job has at least one PE")
	}
	return nil
}

func (s *Setting) shown(text string) string {
	if s.Secret && text != "" {
		return "(set)"
	}
	return text
}

// Origins lists every setting with its value and where it came from, in table order. Secrets are not shown.
func (c *Config) Origins() []Origin { return append([]Origin(nil), c.origins...) }

// Refuses says whether SHMEM_REFUSE names the mechanism.
func (c *Config) Refuses(what string) bool {
	for _, w := range c.Refuse {
		if w == what {
			return true
		}
	}
	return false
}

// Unknown lists variables of the environment ("NAME=value" pairs, as os.Environ) that look like ours and are not, each with the
// nearest name, for a warning. Names that other programs own under SHMEM_ can be exempted by the caller.
func Unknown(environ []string) []string {
	var out []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "SHMEM_") || known(name) {
			continue
		}
		out = append(out, fmt.Sprintf("%s is not a setting (did you mean %s?)", name, nearest(name)))
	}
	sort.Strings(out)
	return out
}

func known(name string) bool {
	for _, s := range Settings() {
		if s.Name == name {
			return true
		}
	}
	return false
}

// nearest is the setting with the fewest edits to name.
func nearest(name string) string {
	best, bestDistance := "", 1<<30
	for _, s := range Settings() {
		if d := edits(name, s.Name); d < bestDistance {
			best, bestDistance = s.Name, d
		}
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
