// Command sbom prints the bill of materials of a Go binary in CycloneDX JSON: the program and every
// module linked into it, with the versions and hashes that the binary records, and package URLs.
// The output for a binary is always the same because it has no serial number and no timestamp.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	version := flag.String("version", "unknown", "the program's version")
	flag.Parse()
	if err := write(os.Stdout, flag.Arg(0), *version); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write prints the bill of materials of the binary at path.
func write(w io.Writer, path, version string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	bom, err := billOf(info, version)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	encoder := cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	return nil
}

// billOf returns the bill of materials with the program, the Go standard library and the modules.
func billOf(info *debug.BuildInfo, version string) (*cyclonedx.BOM, error) {
	program := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, Name: "penstock", Version: version,
		BOMRef: purl(info.Main.Path, version), PackageURL: purl(info.Main.Path, version),
		Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		Properties: settingsOf(info),
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	components := []cyclonedx.Component{{
		Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: goVersion,
		BOMRef: purl("std", goVersion), PackageURL: purl("std", goVersion),
		Description: "The Go standard library and runtime",
	}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		c, err := componentOf(module)
		if err != nil {
			return nil, err
		}
		components = append(components, c)
	}
	refs := make([]string, len(components))
	for i := range components {
		refs[i] = components[i].BOMRef
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &program}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return bom, nil
}

// componentOf returns the component of a module, with the hash of go.sum: SHA-256 over the hashes of
// the files.
func componentOf(m *debug.Module) (cyclonedx.Component, error) {
	c := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		BOMRef: purl(m.Path, m.Version), PackageURL: purl(m.Path, m.Version),
	}
	sum, ok := strings.CutPrefix(m.Sum, "h1:")
	if !ok {
		return c, fmt.Errorf("module %s %s: hash %q in the binary has no prefix h1", m.Path, m.Version, m.Sum)
	}
	raw, err := base64.StdEncoding.DecodeString(sum)
	if err != nil {
		return c, fmt.Errorf("module %s %s: hash: %w", m.Path, m.Version, err)
	}
	c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
	return c, nil
}

// settingsOf returns the program's build settings, such as commit, platform and flags.
func settingsOf(info *debug.BuildInfo) *[]cyclonedx.Property {
	var properties []cyclonedx.Property
	for _, s := range info.Settings {
		properties = append(properties, cyclonedx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	return &properties
}

// purl returns the package URL of a Go module.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
