package lint

import (
	"strconv"
	"strings"
	"testing"
)

// layers is the table of the design, the highest first. A folder may import those of lower layers only.
var layers = [][]string{
	{"capi", "gocore/shmemtest"},
	{"gocore/world"},
	{"gocore/coll", "gocore/message"},
	{"gocore/fabric"},
	{"gocore/bootstrap", "gocore/liveness", "gocore/device"},
	{"gocore/config", "gocore/memory", "gocore/segment", "gocore/heap", "gocore/team", "gocore/plan", "gocore/reduce", "gocore/hot"},
	{"gocore/status", "gocore/layout", "gocore/json"},
}

// sideways lists the imports within a layer: who implements an interface sees it.
var sideways = map[string]string{"gocore/segment": "gocore/memory"}

// wraps lists the folders that may use cgo.
var wraps = map[string]bool{"capi": true, "gocore/hot": true, "gocore/fabric/ucx": true, "gocore/device/acl": true}

// layer is the layer of a folder and the name it has there; sub-folders belong to the folder above them.
func layer(folder string) (int, string, bool) {
	for i, names := range layers {
		for _, name := range names {
			if folder == name || strings.HasPrefix(folder, name+"/") {
				return i, name, true
			}
		}
	}
	return 0, "", false
}

func TestImportsOnlyGoDown(t *testing.T) {
	for _, s := range goFiles(t) {
		if s.test || !strings.HasPrefix(s.folder, "gocore") && !strings.HasPrefix(s.folder, "capi") {
			continue
		}
		from, name, ok := layer(s.folder)
		if !ok {
			t.Errorf("%s: folder %s stands in no layer; add it to the table of this test and of the design", s.path, s.folder)
			continue
		}
		for _, imp := range s.file.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil || !strings.HasPrefix(path, "goshmem/") {
				continue
			}
			target := strings.TrimPrefix(path, "goshmem/")
			to, toName, ok := layer(target)
			if !ok || to < from || to == from && toName != name && sideways[name] != toName {
				t.Errorf("%s imports %s, which is not below it", s.path, target)
			}
		}
	}
}

func TestUnsafeAndCgoStayWhereTheyBelong(t *testing.T) {
	for _, s := range goFiles(t) {
		for _, imp := range s.file.Imports {
			switch imp.Path.Value {
			case `"unsafe"`:
				if s.folder != "capi" && !strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(s.path, ".go"), "_test"), "_unsafe") {
					t.Errorf("%s imports unsafe; move that to a file *_unsafe.go", s.path)
				}
			case `"C"`:
				if !wraps[s.folder] {
					t.Errorf("%s uses cgo, which only the folders that wrap a C library do", s.path)
				}
			}
		}
	}
}

func TestFoldersAreNouns(t *testing.T) {
	for _, path := range files(t, "gocore", "capi", "python", "kernels") {
		if strings.HasPrefix(path, "capi/include/ascend/") {
			continue // its folders are those that programs written for Ascend SHMEM include
		}
		for _, part := range strings.Split(path, "/") {
			switch part {
			case "util", "utils", "common", "types", "helpers", "misc":
				t.Errorf("%s: %q says nothing; name the folder by what it holds", path, part)
			}
		}
	}
}
