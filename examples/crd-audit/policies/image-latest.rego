# The image of a container may not go back from a tag to latest.
package image_latest

violations contains text if {
	some is in input.object.spec.template.spec.containers
	some was in input.old.spec.template.spec.containers
	is.name == was.name
	tag(is.image) == "latest"
	tag(was.image) != "latest"
	text := sprintf("the image of container %s went back from %s to %s", [is.name, was.image, is.image])
}

# tag is what follows the last colon, unless that is the port of the registry; a digest is as good as a tag.
tag(image) := "a digest" if contains(image, "@")

else := split(name, ":")[1] if {
	parts := split(image, "/")
	name := parts[count(parts) - 1]
	contains(name, ":")
}

else := "latest"
