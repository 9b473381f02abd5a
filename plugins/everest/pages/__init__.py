"""What people see and press inside the Airflow UI: SELECTs for reading, the same functions as the commands for acting."""
