package main

import (
	"bytes"
	"crypto/md5" // Debian's list of checksums has MD5
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeDeb writes a Debian package: an ar archive of the format's version, what dpkg must know, and the files.
func writeDeb(s source, p program, content, license []byte, out string) error {
	installed := []file{
		{"./usr", 0, nil}, {"./usr/bin", 0, nil}, {"./usr/bin/trainyard", 0o755, content},
		{"./usr/bin/kubectl-trainyard", isLink, []byte("trainyard")},
		{"./usr/share", 0, nil}, {"./usr/share/doc", 0, nil}, {"./usr/share/doc/trainyard", 0, nil}, {"./usr/share/doc/trainyard/copyright", 0o644, license},
	}
	data, err := compressed(s.time, append([]file{{".", 0, nil}}, installed...)...)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range installed {
		if f.mode != 0 && f.mode != isLink {
			fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.content), strings.TrimPrefix(f.name, "./"))
		}
	}
	control, err := compressed(s.time, file{"./control", 0o644, []byte(debControl(s, p, len(content)+len(license)))}, file{"./md5sums", 0o644, []byte(sums.String())})
	if err != nil {
		return err
	}
	var ar bytes.Buffer
	ar.WriteString("!<arch>\n")
	for _, member := range []file{{"debian-binary", 0o100644, []byte("2.0\n")}, {"control.tar.gz", 0o100644, control}, {"data.tar.gz", 0o100644, data}} {
		fmt.Fprintf(&ar, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", member.name, s.time.Unix(), 0, 0, member.mode, len(member.content))
		ar.Write(member.content)
		if len(member.content)%2 == 1 {
			ar.WriteByte('\n')
		}
	}
	return os.WriteFile(filepath.Join(out, fmt.Sprintf("%s_%s_%s.deb", p.name, debVersion(s.number()), p.arch)), ar.Bytes(), 0o644)
}

// debVersion is a version that dpkg accepts: it begins with a digit, and a tilde sorts before the release.
func debVersion(version string) string {
	version = strings.Replace(version, "-", "~", 1)
	if version[0] < '0' || version[0] > '9' {
		version = "0~" + version
	}
	return version
}

func debControl(s source, p program, size int) string {
	return fmt.Sprintf(`Package: trainyard
Version: %s
Architecture: %s
Maintainer: The Trainyard authors
Installed-Size: %d
Section: science
Priority: optional
Description: distributed training jobs on this machine or on any Kubernetes
 Runs PyTorchJobs, TFJobs, TrainJobs and others with their run policies, on a
 whole Kubernetes in one process or on a cluster.
`, debVersion(s.number()), p.arch, (size+1023)/1024)
}
