// Package code packs the code of a training for a cluster that cannot read this machine's files, and describes how its pods get it.
// The bundle travels in ConfigMaps, which every cluster has: no registry and no volume is needed. Before the training starts, an init
// container unpacks them in each pod, with the training's own image. The ConfigMaps belong to the job: they stay for its restarts, and
// are deleted with it.
package code

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Limits. An object of Kubernetes has at most 1 MiB of data.
const (
	partSize = 1_000_000
	maxParts = 16
	// maxUnpacked ends the reading of a directory that is not code.
	maxUnpacked = 256 << 20
)

// Bundle is a packed directory.
type Bundle struct {
	Parts [][]byte
	// Files is how many files are in it, Packed how large it is.
	Files, Packed int
}

// packer packs a directory.
type packer struct {
	dir     string
	ignore  patterns
	archive *tar.Writer
	packed  *bytes.Buffer
	files   []fileSize
	total   int64
}

type fileSize struct {
	name string
	size int64
}

// Pack packs a directory.
func Pack(dir string) (*Bundle, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	ignore, err := readPatterns(dir)
	if err != nil {
		return nil, err
	}
	p := &packer{dir: dir, ignore: ignore, packed: &bytes.Buffer{}}
	compressed, err := gzip.NewWriterLevel(p.packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	p.archive = tar.NewWriter(compressed)
	if err := filepath.WalkDir(dir, p.add); err != nil {
		return nil, err
	}
	if err := p.archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	if p.packed.Len() > partSize*maxParts {
		return nil, p.tooLarge(fmt.Sprintf("%d MB packed, and at most %d MB go along", p.packed.Len()/1_000_000, partSize*maxParts/1_000_000))
	}
	return &Bundle{slices.Collect(slices.Chunk(p.packed.Bytes(), partSize)), len(p.files), p.packed.Len()}, nil
}

// add adds a file of the directory.
func (p *packer) add(name string, entry fs.DirEntry, err error) error {
	if err != nil || name == p.dir {
		return err
	}
	inside, err := filepath.Rel(p.dir, name)
	if err != nil {
		return err
	}
	inside = filepath.ToSlash(inside)
	if p.ignore.ignored(inside, entry.IsDir()) {
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	switch {
	case info.Mode().IsRegular(), info.IsDir():
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = os.Readlink(name); err != nil {
			return err
		}
	default:
		return nil // sockets and devices are not code
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = inside
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if info.IsDir() {
		header.Name += "/"
	}
	if err := p.archive.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	p.files, p.total = append(p.files, fileSize{inside, info.Size()}), p.total+info.Size()
	if p.total > maxUnpacked {
		return p.tooLarge(fmt.Sprintf("more than %d MB", maxUnpacked/1_000_000))
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	_, err = io.CopyN(p.archive, file, info.Size())
	return err
}

// tooLarge says what to leave out.
func (p *packer) tooLarge(how string) error {
	slices.SortStableFunc(p.files, func(a, b fileSize) int { return cmp.Compare(b.size, a.size) })
	var largest []string
	for _, f := range p.files[:min(3, len(p.files))] {
		largest = append(largest, fmt.Sprintf("%s (%.1f MB)", f.name, float64(f.size)/1e6))
	}
	return fmt.Errorf("the code in %s is %s: name what stays in %s, and keep data in the image or a volume; the largest files are %s", p.dir, how, IgnoreFile, strings.Join(largest, ", "))
}
