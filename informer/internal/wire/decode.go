package wire

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

// DecodeStatus decodes the Status of an Error event or of an error response.
func DecodeStatus(f Format, raw []byte) (*metav1.Status, error) {
	st := &metav1.Status{}
	if f == Protobuf {
		if err := st.Unmarshal(raw); err != nil {
			return nil, fmt.Errorf("decode status: %w", err)
		}
		st.APIVersion, st.Kind = "v1", "Status" // the bare message does not contain them
		return st, nil
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, st); err != nil {
		return nil, fmt.Errorf("decode status: %w", err)
	}
	if st.Kind != "Status" {
		return nil, &ObjectError{Msg: "want a Status, not kind " + quote(st.Kind)}
	}
	return st, nil
}

// DecodeMetadata decodes the metadata of an object of any kind. Kind and apiVersion are set if the object's
// bytes contain them, which protobuf does not.
func DecodeMetadata(f Format, raw []byte) (*metav1.PartialObjectMetadata, error) {
	p := &metav1.PartialObjectMetadata{}
	var err error
	if f == Protobuf {
		err = p.Unmarshal(raw) // it ignores the other fields
	} else {
		err = decodeJSONMetadata(raw, p)
	}
	if err != nil {
		return nil, fmt.Errorf("decode metadata: %w", err)
	}
	return p, nil
}

// decodeJSONMetadata skips spec and status faster than a decoder would.
func decodeJSONMetadata(raw []byte, p *metav1.PartialObjectMetadata) error {
	s := scan(raw)
	err := s.members(func(key []byte) (err error) {
		switch string(key) {
		case "apiVersion":
			p.APIVersion, err = s.mustText()
		case "kind":
			p.Kind, err = s.mustText()
		case "metadata":
			if _, err = s.must(); err != nil {
				return err
			}
			from := s.pos
			if err = s.value(); err != nil {
				return err
			}
			err = json.UnmarshalCaseSensitivePreserveInts(raw[from:s.pos], &p.ObjectMeta)
		default:
			err = s.value()
		}
		return err
	})
	if err == nil {
		err = s.nothing()
	}
	return s.whole(err)
}
