package suite

import "time"

// past is what tattler get, diff, blame and log take on a large journal.
func past(z Size) Scenario {
	job := "tattler/past"
	sc := Scenario{Name: "past", Objects: 500, Events: z.scale(1_000_000), Jobs: []Step{{Job: job, Limit: 30 * time.Minute}}}
	for _, row := range []struct {
		what, name string
		aim        Aim
	}{
		{"get object", "1,000,000 changes of 100,000 objects: get --at of an object", below("20 ms", 20)},
		{"get namespace", "1,000,000 changes of 100,000 objects: get --at of 2,000 pods of a namespace", below("300 ms", 300)},
		{"diff object", "1,000,000 changes of 100,000 objects: diff of an object", below("50 ms", 50)},
		{"diff namespace", "1,000,000 changes of 100,000 objects: diff of 2,000 pods of a namespace", Aim{}},
		{"blame", "blame of an object with 5,000 versions", below("100 ms", 100)},
		{"stat namespace", "log --stat --noise of a namespace with 25,000 of 1,000,000 changes", Aim{}},
		{"related", "log --related --noise in a namespace with 25,000 of 1,000,000 changes", Aim{}},
	} {
		sc.Rows = append(sc.Rows, RowSpec{Name: row.name, Unit: "ms", Ours: Of(job, row.what+" ms", 1), Aim: row.aim})
	}
	return sc
}
