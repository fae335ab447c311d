data "workerimage_worker_images" "ready" {
  ready_only = true
}

# Images that nobody asks for, and that could be deleted.
output "unused" {
  value = [
    for image in data.workerimage_worker_images.ready.images : image.name
    if image.status.conditions["Deletable"].status == "True"
  ]
}
