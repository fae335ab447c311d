data "workerimage_worker_image_catalog" "all" {
}

# What pools ask for and nobody has made: their next scale-up has nothing to clone.
output "missing" {
  value = [
    for entry in data.workerimage_worker_image_catalog.all.entries : entry.name
    if entry.status.phase == "Missing"
  ]
}
