// Package lint holds the rules of the tree as tests: imports only go down, unsafe and cgo stay where they belong, everything
// exported is documented, functions and files stay small, nothing names a machine. It has no code of its own.
package lint
