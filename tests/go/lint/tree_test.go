package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the top of the repository seen from this folder.
const root = "../../.."

// source is one Go file, parsed.
type source struct {
	path   string // from the root, with slashes
	folder string
	test   bool
	text   []byte
	file   *ast.File
	fset   *token.FileSet
}

// goFiles parses every Go file of the project.
func goFiles(t *testing.T) []source {
	t.Helper()
	var out []source
	for _, path := range files(t, "gocore", "capi", "tests/go", "benchmarks", "examples") {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		require.NoError(t, err)
		out = append(out, source{path, filepath.ToSlash(filepath.Dir(path)), strings.HasSuffix(path, "_test.go"), text, file, fset})
	}
	require.NotEmpty(t, out)
	return out
}

// files lists what lies below the given folders of the tree, without anything hidden, cached or built.
func files(t *testing.T, folders ...string) []string {
	t.Helper()
	var out []string
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || skipped[d.Name()]) {
				return filepath.SkipDir
			}
			if d.Type().IsRegular() {
				rel, err := filepath.Rel(root, path)
				if err != nil {
					return err
				}
				out = append(out, filepath.ToSlash(rel))
			}
			return nil
		})
		require.NoError(t, err)
	}
	return out
}

var skipped = map[string]bool{"__pycache__": true, "build": true, "dist": true, "node_modules": true}

// lines is how many lines a node takes.
func (s *source) lines(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

// at is where a node stands, for messages.
func (s *source) at(n ast.Node) string { return s.fset.Position(n.Pos()).String() }
