//go:build !unix

package record

import "os"

// lockFile does nothing: only Linux has a local cluster, so on other systems nobody else writes.
func lockFile(*os.File) error { return nil }

// syncDir does nothing, for the same reason.
func syncDir(string) error { return nil }
