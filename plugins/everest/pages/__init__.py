"""What people see and press inside the Airflow UI: SELECTs to read, the functions of the commands to act."""
