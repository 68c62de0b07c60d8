// Package layout holds the test that imports go one way.
package layout
