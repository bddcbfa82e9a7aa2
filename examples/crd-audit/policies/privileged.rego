# No pod, and no template of pods, has a privileged container.
package privileged

violations contains text if {
	some spec in [input.object.spec, input.object.spec.template.spec]
	some kind in ["containers", "initContainers", "ephemeralContainers"]
	some container in spec[kind]
	container.securityContext.privileged
	text := sprintf("container %s is privileged", [container.name])
}
