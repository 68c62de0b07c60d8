package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"time"
)

// The parts of SPDX 2.3 that are used.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		Name      string         `json:"name"`
		ID        string         `json:"SPDXID"`
		Version   string         `json:"versionInfo"`
		Location  string         `json:"downloadLocation"`
		Analyzed  bool           `json:"filesAnalyzed"`
		Checksums []spdxChecksum `json:"checksums,omitempty"`
		Refs      []spdxRef      `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

// writeSBOM lists the modules that the linker put into a program, as the program itself says.
func writeSBOM(s source, p program, content []byte, out string) error {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("reading the modules of %s: %w", p.file, err)
	}
	text, err := json.MarshalIndent(sbomOf(s, p, content, info), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, s.baseName(p)+".spdx.json"), append(text, '\n'), 0o644)
}

func sbomOf(s source, p program, content []byte, info *debug.BuildInfo) spdxDocument {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	name := s.baseName(p)
	doc := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name, Namespace: "https://spdx.org/spdxdocs/" + name + "-" + sum,
		Creation:      spdxCreation{s.time.Format(time.RFC3339), []string{"Tool: trainyard-release"}},
		Packages:      []spdxPackage{{Name: p.name, ID: "SPDXRef-program", Version: s.version, Location: "NOASSERTION", Checksums: []spdxChecksum{{"SHA256", sum}}}},
		Relationships: []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-program"}},
	}
	add := func(path, version, purl string) {
		id := "SPDXRef-" + regexp.MustCompile(`[^A-Za-z0-9.-]`).ReplaceAllString(path+"-"+version, "-")
		doc.Packages = append(doc.Packages, spdxPackage{Name: path, ID: id, Version: version, Location: "NOASSERTION", Refs: []spdxRef{{"PACKAGE-MANAGER", "purl", purl}}})
		doc.Relationships = append(doc.Relationships, spdxRelationship{"SPDXRef-program", "DEPENDS_ON", id})
	}
	add("stdlib", info.GoVersion, "pkg:golang/stdlib@"+info.GoVersion[len("go"):])
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	return doc
}
