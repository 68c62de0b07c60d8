package cluster

import (
	"bufio"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyCleanPagesOfTheProgramAreGivenUp(t *testing.T) {
	const smaps = `00400000-04f2b000 r-xp 00000000 fe:00 1234                               /opt/my tools/trainyard
Size:              77000 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
04f2b000-06b00000 r--p 04b2b000 fe:00 1234                               /opt/my tools/trainyard
Anonymous:             0 kB
06b00000-06b01000 r--p 06700000 fe:00 1234                               /opt/my tools/trainyard
Anonymous:             4 kB
06b01000-06c00000 rw-p 06701000 fe:00 1234                               /opt/my tools/trainyard
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 fe:00 99                         /lib/libc.so.6
Anonymous:             0 kB
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`
	got := cleanMappings(bufio.NewScanner(strings.NewReader(smaps)), "/opt/my tools/trainyard")
	want := []mapping{{0x400000, 0x4f2b000}, {0x4f2b000, 0x6b00000}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("other ranges (-want +got):\n%s", diff)
	}
}
