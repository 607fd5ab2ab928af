package config

import (
	"fmt"
	"strings"

	"goshmem/gocore/json"
)

// Markdown is the table for the documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| setting | type | default | meaning |\n|---|---|---|---|\n")
	for _, s := range Settings() {
		kind := string(s.Type)
		if len(s.Choices) > 0 {
			kind += ": " + strings.Join(s.Choices, ", ")
		}
		def := s.Default
		if def == "" {
			def = "(empty)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, kind, def, s.Help)
	}
	return b.String()
}

// JSON is the same table for programs: an array of objects with name, type, default, choices and help.
func JSON() []byte {
	type row struct {
		Name    string   `json:"name"`
		Type    Type     `json:"type"`
		Default string   `json:"default"`
		Choices []string `json:"choices,omitempty"`
		Help    string   `json:"help"`
	}
	var rows []row
	for _, s := range Settings() {
		rows = append(rows, row{s.Name, s.Type, s.Default, s.Choices, s.Help})
	}
	return json.MarshalIndent(rows)
}
