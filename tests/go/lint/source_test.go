package lint

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Limits of the style guide: aim for 40 and 400, stop at these.
const (
	maxFunction = 60
	maxFile     = 500
)

func TestGofmt(t *testing.T) {
	for _, s := range goFiles(t) {
		want, err := format.Source(s.text)
		require.NoError(t, err, s.path)
		if !bytes.Equal(want, s.text) {
			t.Errorf("%s is not formatted; run gofmt -w on it", s.path)
		}
	}
}

func TestVet(t *testing.T) {
	if testing.Short() {
		t.Skip("vet compiles everything")
	}
	cmd := exec.Command("go", "vet", "./gocore/...", "./capi/...", "./tests/...")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

func TestFunctionsAndFilesStaySmall(t *testing.T) {
	for _, path := range files(t, "gocore", "capi", "python", "kernels", "tests", "benchmarks", "examples") {
		switch filepath.Ext(path) {
		case ".go", ".c", ".h", ".hpp", ".cpp", ".py":
			text, err := os.ReadFile(filepath.Join(root, path))
			require.NoError(t, err)
			if n := bytes.Count(text, []byte("\n")); n > maxFile {
				t.Errorf("%s has %d lines; split it by noun before %d", path, n, maxFile)
			}
		}
	}
	for _, s := range goFiles(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && !s.test && s.lines(f) > maxFunction {
				t.Errorf("%s: %s has %d lines; give a part of it a name before %d", s.at(f), f.Name.Name, s.lines(f), maxFunction)
			}
		}
	}
}

func TestEverythingExportedIsDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range goFiles(t) {
		if s.test {
			continue
		}
		documented[s.folder] = documented[s.folder] || s.file.Doc != nil
		for _, d := range s.file.Decls {
			undocumented(d, func(name string, n ast.Node) { t.Errorf("%s: %s has no doc comment", s.at(n), name) })
		}
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("package %s has no doc comment", folder)
		}
	}
}

// undocumented reports the exported names of a declaration that no comment describes.
func undocumented(d ast.Decl, report func(string, ast.Node)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && receiverExported(d) && d.Doc == nil {
			report(d.Name.Name, d)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
					report(spec.Name.Name, spec)
				}
			case *ast.ValueSpec:
				if spec.Names[0].IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
					report(spec.Names[0].Name, spec)
				}
			}
		}
	}
}

// standard are methods whose meaning is that of the interface they are for.
var standard = map[string]bool{"Len": true, "Less": true, "Swap": true, "Error": true, "Unwrap": true, "String": true}

func receiverExported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	if standard[f.Name.Name] {
		return false
	}
	x := f.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	if generic, ok := x.(*ast.IndexExpr); ok {
		x = generic.X
	}
	id, ok := x.(*ast.Ident)
	return ok && id.IsExported()
}

// TestNoMutableStateBelowCapi finds package-level variables that are assigned after their declaration, or whose type is made to
// change (a lock, an atomic, a channel).
func TestNoMutableStateBelowCapi(t *testing.T) {
	vars := map[string]map[string]bool{}
	each := func(f func(s source)) {
		for _, s := range goFiles(t) {
			if !s.test && strings.HasPrefix(s.folder, "gocore/") {
				f(s)
			}
		}
	}
	each(func(s source) {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if changing(v) {
					t.Errorf("%s: package-level %s can change; state belongs to a world", s.at(v), v.Names[0].Name)
				}
				for _, name := range v.Names {
					if vars[s.folder] == nil {
						vars[s.folder] = map[string]bool{}
					}
					vars[s.folder][name.Name] = true
				}
			}
		}
	})
	each(func(s source) { assigned(&s, vars[s.folder], t.Errorf) })
}

func changing(v *ast.ValueSpec) bool {
	if _, ok := v.Type.(*ast.ChanType); ok {
		return true
	}
	sel, ok := v.Type.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && (pkg.Name == "sync" || pkg.Name == "atomic")
}

// assigned reports writes to the package's variables. Names are resolved by the parser within a file, so a local of the same
// name is not taken for the variable.
func assigned(s *source, vars map[string]bool, report func(string, ...any)) {
	check := func(x ast.Expr) {
		if ix, ok := x.(*ast.IndexExpr); ok {
			x = ix.X
		}
		id, ok := x.(*ast.Ident)
		if !ok || id.Name == "_" || !vars[id.Name] {
			return
		}
		if id.Obj != nil { //nolint:staticcheck // enough for this: file scope is all that is asked
			if _, top := id.Obj.Decl.(*ast.ValueSpec); !top || s.file.Scope.Lookup(id.Name) != id.Obj {
				return
			}
		}
		report("%s: package-level %s is assigned; state belongs to a world", s.at(id), id.Name)
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, x := range n.Lhs {
					check(x)
				}
			}
		case *ast.IncDecStmt:
			check(n.X)
		}
		return true
	})
}

// TestNothingNamesAMachine looks for absolute paths of the places this was written at.
func TestNothingNamesAMachine(t *testing.T) {
	var words [][]byte
	for _, w := range []string{"work/", "root/", "opt/venvs", "home/"} {
		words = append(words, []byte(`"/`+w), []byte(` /`+w), []byte(`=/`+w), []byte("`/"+w), []byte(`'/`+w))
	}
	tops, err := filepath.Glob(filepath.Join(root, "*"))
	require.NoError(t, err)
	var paths []string
	for _, top := range tops {
		if strings.HasPrefix(filepath.Base(top), ".") || skipped[filepath.Base(top)] {
			continue
		}
		paths = append(paths, files(t, filepath.Base(top))...)
	}
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		if len(text) > 1<<20 || bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			continue
		}
		for _, w := range words {
			if bytes.Contains(text, w) && !strings.HasPrefix(path, "tests/go/lint/") {
				t.Errorf("%s names a place on some machine: %q", path, w)
			}
		}
	}
}
