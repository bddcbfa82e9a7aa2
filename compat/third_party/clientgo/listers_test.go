/*
Copyright 2025 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Adapted from k8s.io/client-go v0.37.2, tools/cache/listers_test.go. What was changed is in README.md.

package clientgo

import (
	. "k8s.io/client-go/tools/cache"

	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func testListAll(t *testing.T) {
	testCases := []struct {
		name           string
		numObjects     int
		numMatching    int
		matchingLabels map[string]string
		selector       labels.Selector
		expectedCount  int
	}{
		{
			name:           "subset match",
			numObjects:     1000,
			numMatching:    100,
			matchingLabels: map[string]string{"match": "true"},
			selector:       labels.SelectorFromSet(map[string]string{"match": "true"}),
			expectedCount:  100,
		},
		{
			name:           "all match",
			numObjects:     10000,
			numMatching:    0,
			matchingLabels: map[string]string{},
			selector:       labels.Everything(),
			expectedCount:  10000,
		},
		{
			name:           "no match",
			numObjects:     10000,
			numMatching:    0,
			matchingLabels: map[string]string{"nomatch": "true"},
			selector:       labels.SelectorFromSet(map[string]string{"match": "true"}),
			expectedCount:  0,
		},
	}

	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			store := mustCreateStore(tc.numObjects, tc.numMatching, tc.matchingLabels)

			var matchingObjects int
			appendFn := func(obj interface{}) {
				matchingObjects++
			}

			err := ListAll(store, tc.selector, appendFn)
			if err != nil {
				t.Fatalf("ListAll returned an error: %v", err)
			}

			if matchingObjects != tc.expectedCount {
				t.Errorf("ListAll returned %d objects, expected %d", matchingObjects, tc.expectedCount)
			}
		})
	}
}

func mustCreateStore(numObjects int, numMatching int, labels map[string]string) Store {
	if numMatching > numObjects {
		panic("there can not be more matches than objects")
	}
	store := newIndexerOf(&metav1.PartialObjectMetadata{}, Indexers{})
	// add matching objects to the store
	for i := 0; i < numObjects; i++ {
		obj := &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{
				Name:   fmt.Sprintf("obj-%d", i),
				Labels: map[string]string{},
			},
		}
		if i < numMatching {
			obj.Labels = labels
		}
		err := store.Add(obj)
		if err != nil {
			panic("unexpected error")
		}
	}
	return store
}
