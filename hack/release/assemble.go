package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile has the checksums of all other files, for `sha256sum -c`.
const sumsFile = "SHA256SUMS"

// assemble writes everything that is published into out.
func assemble(s source, programs []program, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(s.dir, "LICENSE"))
	if err != nil {
		return err
	}
	var archives []archive
	for _, p := range programs {
		content, err := os.ReadFile(p.file)
		if err != nil {
			return err
		}
		if err := writeSBOM(s, p, content, out); err != nil {
			return err
		}
		if p.name != commandLine {
			continue
		}
		a, err := writeArchive(s, p, content, license, out)
		if err != nil {
			return err
		}
		archives = append(archives, a)
		if p.os == "linux" {
			if err := writeDeb(s, p, content, license, out); err != nil {
				return err
			}
		}
	}
	if err := writeImages(s, programs, out); err != nil {
		return err
	}
	if err := writeChart(s, out); err != nil {
		return err
	}
	if err := writeKrew(s, archives, out); err != nil {
		return err
	}
	return writeSums(out)
}

// archive is the command line for a platform, as people download it.
type archive struct {
	program
	file, sum string
}

// number is the version without its v, as package managers write it.
func (s source) number() string { return strings.TrimPrefix(s.version, "v") }

// baseName is the beginning of the name of a program's files.
func (s source) baseName(p program) string {
	return fmt.Sprintf("%s_%s_%s_%s", p.name, s.number(), p.os, p.arch)
}

func writeArchive(s source, p program, content, license []byte, out string) (archive, error) {
	var data []byte
	var err error
	name := s.baseName(p)
	if p.os == "windows" {
		name += ".zip"
		data, err = zipped(s, p.name+".exe", content, license)
	} else {
		name += ".tar.gz"
		data, err = compressed(s.time, file{p.name, 0o755, content}, file{"LICENSE", 0o644, license})
	}
	if err != nil {
		return archive{}, err
	}
	return archive{p, name, fmt.Sprintf("%x", sha256.Sum256(data))}, os.WriteFile(filepath.Join(out, name), data, 0o644)
}

func zipped(s source, name string, content, license []byte) ([]byte, error) {
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	for _, f := range []file{{name, 0o755, content}, {"LICENSE", 0o644, license}} {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: s.time}
		header.SetMode(os.FileMode(f.mode))
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buffer.Bytes(), err
}

func writeSums(out string) error {
	files, err := os.ReadDir(out) // sorted by name
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	return os.WriteFile(filepath.Join(out, sumsFile), []byte(sums.String()), 0o644)
}
