package cluster

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram gives up the pages of the program file that this process has mapped. A start uses most of the program, an idle cluster
// little of it, and the kernel is slow to take mapped code back. What is used again comes from the page cache.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer file.Close() //nolint:errcheck // it was only read
	for _, r := range cleanMappings(bufio.NewScanner(file), program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED) // else it stays mapped
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// cleanMappings are those of a file that the process cannot write to and that are as in the file: a page that the dynamic linker has
// relocated is lost when it is given up. The text has the format of /proc/PID/smaps.
func cleanMappings(smaps *bufio.Scanner, path string) (clean []mapping) {
	var last *mapping
	for smaps.Scan() {
		fields := strings.Fields(smaps.Text())
		if len(fields) < 2 {
			continue
		}
		if from, to, ok := strings.Cut(fields[0], "-"); ok { // 00400000-04f2b000 r-xp 00000000 fe:00 1234 /usr/bin/trainyard
			last = nil
			start, err := strconv.ParseUint(from, 16, 64)
			end, endErr := strconv.ParseUint(to, 16, 64)
			if err == nil && endErr == nil && (fields[1] == "r-xp" || fields[1] == "r--p") && strings.HasSuffix(smaps.Text(), " "+path) {
				last = &mapping{uintptr(start), uintptr(end)}
			}
		} else if fields[0] == "Anonymous:" && fields[1] == "0" && last != nil {
			clean = append(clean, *last)
		}
	}
	return clean
}
