def orcheo_workflow():
        a = 1
	b = 2
