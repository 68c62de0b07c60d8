package code

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// directory makes a directory with files of these contents.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// names are the files in a bundle.
func names(t *testing.T, b *Bundle) (files []string) {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(bytes.Join(b.Parts, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(files)
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeDir {
			files = append(files, header.Name)
		}
	}
}

func TestWhatIsPacked(t *testing.T) {
	for _, row := range []struct {
		name, ignore string
		want         string
	}{
		{"all but what is no code", "", "data/set.bin data/small.txt deep/data/x lib/util.py train.py"},
		{"not what a name matches, at any depth", "*.bin\ndata/", "lib/util.py train.py"},
		{"not what a path matches, from the top", "/data/*.bin", "data/small.txt deep/data/x lib/util.py train.py"},
		{"what is taken back", "*.bin\n!set.bin\n# a comment\n\n", "data/set.bin data/small.txt deep/data/x lib/util.py train.py"},
		{"even what is never packed otherwise, if it is taken back", "!.env\ndeep/", ".env data/set.bin data/small.txt lib/util.py train.py"},
	} {
		t.Run(row.name, func(t *testing.T) {
			files := map[string]string{
				"train.py": "x", "lib/util.py": "x", "lib/__pycache__/util.pyc": "x", ".git/config": "x", ".env": "SECRET=1", "data/set.bin": "x", "data/small.txt": "x", "deep/data/x": "x",
			}
			if row.ignore != "" {
				files[IgnoreFile] = row.ignore
			}
			b, err := Pack(directory(t, files))
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(names(t, b), func(name string) bool { return name == IgnoreFile })
			if strings.Join(got, " ") != row.want {
				t.Errorf("packed are %q, want %q", got, row.want)
			}
		})
	}
}

func TestLargeCode(t *testing.T) {
	noise := func(n int) string {
		content := make([]byte, n)
		_, _ = rand.Read(content)
		return string(content)
	}
	b, err := Pack(directory(t, map[string]string{"model.bin": noise(2_500_000)}))
	if err != nil || len(b.Parts) != 3 || b.Files != 1 {
		t.Errorf("it has %d parts (%v), want 3", len(b.Parts), err)
	}
	for i, m := range b.ConfigMaps("demo-code-abc") {
		if size := len(m.BinaryData["part-00"+string(rune('0'+i))]); size == 0 || size > 1<<20 {
			t.Errorf("part %d has %d bytes", i, size)
		}
	}
	_, err = Pack(directory(t, map[string]string{"train.py": "x", "data/set.bin": noise(20_000_000)}))
	if err == nil || !strings.Contains(err.Error(), "20 MB packed, and at most 16 MB go along: name what stays in .trainyardignore") || !strings.Contains(err.Error(), "data/set.bin (20.0 MB)") {
		t.Errorf("it says %v", err)
	}
	_, err = Pack(filepath.Join(t.TempDir(), "nowhere"))
	if err == nil {
		t.Error("a directory that is not there is packed")
	}
}
