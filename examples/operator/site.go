package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Site is an image that is served.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SiteSpec   `json:"spec,omitempty"`
	Status            SiteStatus `json:"status,omitempty"`
}

// SiteSpec is the desired state of a Site.
type SiteSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas,omitempty"`
	// Config names a ConfigMap, whose keys are the environment of the image. A change of it is rolled out.
	Config string `json:"config,omitempty"`
}

// SiteStatus is the observed state of a Site.
type SiteStatus struct {
	// Conditions has Ready.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SiteList is a list of Sites.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

// DeepCopy copies a Site.
func (s *Site) DeepCopy() *Site {
	c := *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = nil
	for i := range s.Status.Conditions {
		c.Status.Conditions = append(c.Status.Conditions, *s.Status.Conditions[i].DeepCopy())
	}
	return &c
}

// DeepCopyObject implements runtime.Object.
func (s *Site) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *SiteList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return &c
}

func addToScheme(scheme *runtime.Scheme) {
	gv := schema.GroupVersion{Group: "examples.tattler.dev", Version: "v1"}
	scheme.AddKnownTypes(gv, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(scheme, gv)
}
