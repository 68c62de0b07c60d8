package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"time"
)

// file is a file of an archive. A mode of 0 makes it a directory; a link has the name of its target as content.
type file struct {
	name    string
	mode    int64
	content []byte
}

// isLink is the mode of symbolic links.
const isLink = 0o120777

// tarred is a tar archive of files that belong to root and have one time.
func tarred(at time.Time, files ...file) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		switch f.mode {
		case 0:
			header.Typeflag, header.Mode, header.Name = tar.TypeDir, 0o755, f.name+"/"
		case isLink:
			header.Typeflag, header.Mode, header.Linkname, header.Size = tar.TypeSymlink, 0o777, string(f.content), 0
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if header.Size == 0 {
			continue
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buffer.Bytes(), err
}

// compressed is a compressed tar archive. Its gzip header has no time and no name.
func compressed(at time.Time, files ...file) ([]byte, error) {
	plain, err := tarred(at, files...)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	w, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err = w.Close()
	return buffer.Bytes(), err
}
