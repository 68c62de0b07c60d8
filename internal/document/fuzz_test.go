package document

import "testing"

// FuzzParse: whatever a file has, it is read or refused with a sentence, and every field has a line of it.
func FuzzParse(f *testing.F) {
	f.Add(file)
	f.Add("--- \na: *b\n---\n- x\n")
	f.Add("a: &a [*a, *a]\n")
	f.Add("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n<<: {d: *c}\n")
	f.Add("a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nd: &d [*c,*c,*c]\ne: [*d,*d,*d]\n")
	f.Add("? {a: b}\n: c\na: 1\na: 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		docs, err := Parse("job.yaml", text)
		if len(docs) == 0 && err == nil {
			t.Fatal("nothing is read, and nothing is said")
		}
		for _, doc := range docs {
			for _, path := range []string{"", "metadata.name", "spec.pytorchReplicaSpecs[Worker].template", "a[1]"} {
				if line := doc.Line(path); line < 1 {
					t.Fatalf("%s is in line %d", path, line)
				}
			}
		}
	})
}
